from __future__ import annotations

from pathlib import Path

import junitparser
import pytest
import xmlschema
from rich.console import Console

from harness.record.lab_run import JobStatus, MetricStatus, RunRecord
from harness.report.annotations import github_lines, gitlab_quality
from harness.report.drawing import Rect
from harness.report.history_report import Panel, picture
from harness.report.junit import junit_xml
from harness.report.lab_markdown import markdown
from harness.report.lab_table import run_report
from harness.report.sparkline import sparkline
from tests.lab import samples

SCHEMA = xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))
HOSTILE = "a\x00b\x1b[31m]]><script>\n| x | @all `y` \u202e\ud800 ::error::%"


def _everything() -> RunRecord:
    good, bad = samples.metric(), samples.metric("arena_used_bytes", MetricStatus.FAILED, 10040)
    return samples.run(
        samples.job("kws", metrics=(good, bad), status=JobStatus.FAILED, reason="arena_used_bytes: no good"),
        samples.job(
            "cat", metrics=(good,), status=JobStatus.FLAKY, reason="attempt 1 on right: link.silent: no answer"
        ),
        samples.job(
            "dog", status=JobStatus.ERROR, rig="right", reason="link.silent: no answer", remedy="check the cable"
        ),
        samples.job("cow", status=JobStatus.BLOCKED, rig="", reason="every rig for it is benched"),
        samples.job("pig", status=JobStatus.SKIPPED, rig="", reason="no rig has a nucleo-f746zg"),
        samples.job("hen", metrics=(good, samples.metric("stack_used_bytes", MetricStatus.NOT_MEASURED))),
    )


def test_the_schema_accepts_every_outcome_and_refuses_others() -> None:
    SCHEMA.validate(junit_xml(_everything()).decode())
    broken = junit_xml(_everything()).decode().replace("<failure message", "<failure massage")
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        SCHEMA.validate(broken)


def test_junit_counts_what_each_rig_did() -> None:
    parsed = junitparser.JUnitXml.fromstring(junit_xml(_everything()))
    suites = {suite.name: suite for suite in parsed}
    assert {name: (s.tests, s.failures, s.errors, s.skipped) for name, s in suites.items()} == {
        "left": (5, 1, 0, 1),
        "right": (1, 0, 1, 0),
        "no-rig": (2, 0, 1, 1),
    }
    assert (parsed.tests, parsed.failures, parsed.errors, parsed.skipped) == (8, 1, 2, 2)
    properties = {p.name: p.value for p in suites["left"].properties()}
    assert properties["probe_uid"] == "066A"
    assert properties["run"] == "run-1"


def test_a_case_is_a_metric_of_a_model() -> None:
    parsed = junitparser.JUnitXml.fromstring(junit_xml(_everything()))
    cases = {case.name: case for suite in parsed for case in suite}
    assert set(cases) == {
        *("kws.arena_min_bytes", "kws.arena_used_bytes", "cat.arena_min_bytes", "dog.job", "cow.job", "pig.job"),
        *("hen.arena_min_bytes", "hen.stack_used_bytes"),
    }
    case = cases["cat.arena_min_bytes"]
    properties = {p.name: p.value for p in case.child(junitparser.Properties)}
    assert properties["attempts"] == "2"
    assert properties["tflm_commit"] == "aaa"
    assert properties["flaky"] == "attempt 1 on right: link.silent: no answer"
    assert "attempt 1 on right: error: link.silent: no answer" in case.system_out
    assert "-> TrialRequest(arena_bytes=12928)" in case.system_out
    assert case.is_passed
    # the time of a job is told once
    assert sum(case.time for case in cases.values() if case.name.startswith("kws.")) == 2.0


def test_hostile_names_break_no_report() -> None:
    run = samples.run(samples.job(HOSTILE, JobStatus.FAILED, reason=HOSTILE, metrics=(samples.metric(),)))
    text = junit_xml(run).decode()
    SCHEMA.validate(text)
    assert "\x1b" not in text and "\x00" not in text
    for line in github_lines(run):
        assert line.isprintable()
        assert line.startswith("::error file=lab/night.yaml,title=a")
        assert line.endswith("::error::%25")
    shown = markdown(run)
    assert "@all" not in shown.replace(r"\@all", "")
    assert "<script>" not in shown.replace(r"\<script\>", "")
    assert all("\x1b" not in entry["description"] for entry in gitlab_quality(run))
    console = Console(record=True, width=200, markup=False, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    for part in run_report(run, "r.json"):
        console.print(part)
    assert "\x1b[31m" not in console.export_text()


def test_markdown_tells_the_worst_first() -> None:
    text = markdown(_everything())
    assert text.startswith("## Lab run night: 1 failed, 1 error, 1 blocked, 1 flaky, 1 skipped, 1 passed\n")
    rows = [
        line.split("|")[3].strip() for line in text.splitlines() if line.startswith("| ") and "/cmsis\\_nn |" in line
    ]
    assert rows[:5] == ["failed", "error", "blocked", "flaky", "skipped"]
    assert "rig **right** was benched: 3 errors in a row" in text


def test_annotations_have_the_level_of_their_status() -> None:
    levels = [line.split(" ")[0] for line in github_lines(_everything())]
    assert levels == ["::error", "::warning", "::error", "::error", "::notice"]
    entries = gitlab_quality(_everything())
    assert [entry["severity"] for entry in entries] == ["major", "minor", "major", "major", "info"]
    assert len({entry["fingerprint"] for entry in entries}) == 5
    assert entries[0]["location"] == {"path": "lab/night.yaml", "lines": {"begin": 1}}
    assert github_lines(_everything())[0] == (
        "::error file=lab/night.yaml,title=kws/nucleo-f746zg/cmsis_nn failed on left::arena_used_bytes: no good"
    )


def test_every_report_says_what_to_do() -> None:
    run = _everything()
    assert "| error | link.silent: no answer | check the cable |" in markdown(run)
    (line,) = [line for line in github_lines(run) if "dog" in line]
    assert line.endswith("::link.silent: no answer%0Acheck the cable")
    (entry,) = [entry for entry in gitlab_quality(run) if "dog" in entry["description"]]
    assert entry["description"].endswith(" on right: link.silent: no answer; check the cable")
    parsed = junitparser.JUnitXml.fromstring(junit_xml(run))
    (fault,) = next(case for suite in parsed for case in suite if case.name == "dog.job").result
    assert (fault.message, fault.text) == ("link.silent: no answer", "link.silent: no answer\ncheck the cable")


def test_a_run_without_jobs_is_a_valid_document() -> None:
    SCHEMA.validate(junit_xml(samples.run()).decode())
    assert markdown(samples.run()).startswith("## Lab run night: no jobs")


@pytest.mark.parametrize(
    ("values", "blocks"), [([1, 2, 3], "▁▅█"), ([5, 5], "▁▁"), ([], ""), ([3, 1], "█▁"), (range(100), None)]
)
def test_sparkline(values: list[int], blocks: str | None) -> None:
    drawn = sparkline(values)
    assert drawn == blocks if blocks is not None else len(drawn) == 72


def test_a_picture_marks_the_changes() -> None:
    steps = Panel("arena", [10, 10, 20], ["a", "b", "c"], [2], "B")
    level = Panel("cycles", [7, 7], ["d", "e"], [], "counts")
    drawing = picture("kws", [steps, level])
    dashed = [shape for shape in drawing.shapes if getattr(shape, "dashed", False)]
    assert [(line.y1, line.y2) for line in dashed] == [(50, 280)]
    assert [shape.tip for shape in drawing.shapes if isinstance(shape, Rect)] == ["a", "b", "c", "d", "e"]
    assert drawing.height == 640
    assert all(320 < shape.y < 640 for shape in drawing.shapes if isinstance(shape, Rect) and shape.tip in "de")
