"""Two libraries against each other: the terms of the explanation, from records made up with known differences."""

from __future__ import annotations

from pathlib import Path

import junitparser
import msgspec
import pytest

from harness.errors import UsageError
from harness.lab.upgrade import parse_vary, upgrades
from harness.record.lab_run import AttemptRecord, JobRecord, JobStatus, RunRecord
from harness.record.schema import (
    CategoryRecord,
    MeasuredRecord,
    OperatorTimeRecord,
    ProfileRecord,
    RunTimesRecord,
    SweepRecord,
    TimingRecord,
)
from harness.record.store import write_record
from harness.report.junit import junit_xml
from harness.report.lab_markdown import markdown
from harness.report.upgrade_table import upgrade_report
from tests.lab import samples

EVAL, NODES = "TfLiteEvalTensor data", "NodeAndRegistration struct"


def _sweep(
    *,
    eval_bytes: int,
    eval_size: int,
    node_bytes: int,
    head: int,
    lost: int,
    cycles: float,
    conv: int,
    scratch: int,
    commit: str,
) -> SweepRecord:
    tail = eval_bytes + node_bytes + 500
    operators = (OperatorTimeRecord("CONV_2D", conv), OperatorTimeRecord("SOFTMAX", 100))
    times = RunTimesRecord(32768, 1, 10, 10, 1000, 990, cycles, 1010, cycles, 3.0, "00")
    record = samples.sweep(commit=commit)
    assert record.device is not None
    placement = {"scratch": 0, "requested_bytes": scratch, "first_use": 3}
    kept = {"category": NODES, "operator": 1, "size_bytes": node_bytes - 400, "padding_bytes": 4}
    return msgspec.structs.replace(
        record,
        plan={"arena": {"min_bytes": 1, "used_bytes": 1}, "placements": [placement], "tail": [kept]},
        measured=MeasuredRecord(
            arena_bytes=32768,
            used_bytes=head + tail + lost,
            head_bytes=head,
            tail_bytes=tail,
            categories=(
                CategoryRecord(EVAL, eval_bytes, eval_bytes, eval_bytes // eval_size),
                CategoryRecord(NODES, node_bytes, node_bytes, node_bytes // 32),
            ),
        ),
        device=msgspec.structs.replace(record.device, struct_sizes={"TfLiteEvalTensor": eval_size}),
        timing=TimingRecord("cycles", times, profile=ProfileRecord(operators, conv + 110, 10)),
    )


def _job(folder: Path, library: str, sweep: SweepRecord | None, number: int) -> JobRecord:
    path = write_record(sweep, folder / str(number)).as_posix() if sweep else ""
    attempt = AttemptRecord(number=1, rig="left", status="ok", started="", seconds=1, record_path=path)
    job = samples.job(status=JobStatus.PASSED if sweep else JobStatus.ERROR, reason="" if sweep else "build.failed: no")
    return msgspec.structs.replace(job, id=f"kws/b/cmsis_nn/tflm={library}", tflm=library, attempts=(attempt,))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[JobRecord, JobRecord]:
    common = {"node_bytes": 416, "cycles": 1000.0}
    old = _sweep(eval_bytes=420, eval_size=12, head=16000, lost=0, conv=800, scratch=490, commit="aaa", **common)  # type: ignore[arg-type]
    new = _sweep(
        eval_bytes=560,
        eval_size=16,
        node_bytes=448,
        head=16100,
        lost=8,
        conv=900,
        cycles=1104.0,
        scratch=590,
        commit="bbb",
    )
    return _job(tmp_path, "old", old, 1), _job(tmp_path, "new", new, 2)


def test_every_byte_has_its_category_and_reason(pair: tuple[JobRecord, JobRecord]) -> None:
    (record,) = upgrades(pair, ("old", "new"))
    assert (record.before, record.after, record.problem) == ("aaa", "bbb", "")
    terms = {term.name: (term.difference, term.explanation) for term in record.bytes}
    assert terms[EVAL] == (140, "sizeof(TfLiteEvalTensor) 12 -> 16")
    assert terms[NODES] == (32, "count 13 -> 14, operator 1 20 -> 52")
    assert terms["arena_head_bytes"] == (100, "scratch of operator 3 490 -> 590")
    assert terms["arena_used_bytes"][0] == 140 + 32 + 100 + 8
    assert record.unexplained_bytes == 8


def test_cycles_within_the_noise_are_no_change(pair: tuple[JobRecord, JobRecord]) -> None:
    (record,) = upgrades(pair, ("old", "new"))
    assert {term.name: term.beyond_noise for term in record.cycles} == {
        "Invoke": True,
        "0 CONV_2D": True,
        "1 SOFTMAX": False,
    }


def test_a_library_with_which_a_model_does_not_run_is_told(tmp_path: Path, pair: tuple[JobRecord, JobRecord]) -> None:
    (record,) = upgrades((pair[0], _job(tmp_path, "new", None, 3)), ("old", "new"))
    assert record.problem == "with new: error: build.failed: no"
    assert record.bytes == ()


def test_the_report_shows_what_changed_and_nothing_else(pair: tuple[JobRecord, JobRecord]) -> None:
    from rich.console import Console

    console = Console(width=160, markup=False, highlight=False)
    with console.capture() as captured:
        for part in upgrade_report(upgrades(pair, ("old", "new"))):
            console.print(part)
    text = captured.get()
    assert "sizeof(TfLiteEvalTensor) 12 -> 16" in text
    assert "+104 ticks (+10.40 %)" in text
    assert "+8 B are in no category" in text
    assert "SOFTMAX" not in text


def _compared(pair: tuple[JobRecord, JobRecord]) -> RunRecord:
    jobs = [
        msgspec.structs.replace(job, metrics=(samples.metric(), samples.metric("arena_used_bytes"))) for job in pair
    ]
    return msgspec.structs.replace(samples.run(*jobs), upgrades=upgrades(pair, ("old", "new")))


def test_markdown_has_the_comparison_too(pair: tuple[JobRecord, JobRecord]) -> None:
    text = markdown(_compared(pair)).replace("\\", "")
    assert "\n### kws on nucleo-f746zg (cmsis_nn), TFLM aaa -> bbb\n" in text
    assert "| what | before | after | difference | why |\n|---|--:|--:|--:|---|\n" in text
    assert f"| {EVAL} | 420 | 560 | +140 B | sizeof(TfLiteEvalTensor) 12 -> 16 |" in text
    assert "| 0 CONV_2D | 800 | 900 | +100 ticks (+12.50 %) |  |" in text
    assert "\n+8 B are in no category: look at the two records\n" in text


def test_junit_has_the_comparison_in_the_cases_of_its_jobs(pair: tuple[JobRecord, JobRecord]) -> None:
    run = _compared(pair)
    other = samples.job("cat", metrics=(samples.metric(),))
    document = junit_xml(msgspec.structs.replace(run, jobs=(*run.jobs, other)))
    (suite,) = junitparser.JUnitXml.fromstring(document)
    cases = [case for case in suite if case.name == "kws.arena_used_bytes"]
    assert len(cases) == 2
    for case in cases:
        told = {p.name: p.value for p in case.child(junitparser.Properties) if p.name.startswith("upgrade.")}
        assert told == {"upgrade.tflm": "aaa -> bbb", "upgrade.before": "17336", "upgrade.after": "17616"}
        assert f"  {EVAL}: 420 -> 560 (+140 B): sizeof(TfLiteEvalTensor) 12 -> 16\n" in case.system_out
        assert "  +8 B are in no category" in case.system_out
    assert b"aaa -&gt; bbb" not in document.partition(b'name="cat.')[2]


@pytest.mark.parametrize("text", ["tflm=a", "kernels=a,b", "tflm=", "tflm", "tflm=a,b,c", "tflm=nowhere,never"])
def test_what_cannot_be_varied_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_vary(text)


def test_two_folders_are_two_libraries(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert parse_vary(f"tflm={tmp_path / 'a'},{tmp_path / 'b'}") == (str(tmp_path / "a"), str(tmp_path / "b"))
    with pytest.raises(UsageError, match="one library twice"):
        parse_vary(f"tflm={tmp_path / 'a'},{tmp_path / 'a'}")
