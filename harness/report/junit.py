"""A lab run as JUnit XML: a suite per rig, a case per metric (``model.metric``), as CI systems read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from harness.record.lab_run import JobRecord, JobStatus, MetricRecord, MetricStatus, RunRecord
from harness.record.upgrade import UpgradeRecord
from harness.report import upgrade_text

#: Characters that no XML 1.0 document may hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: Suite of the jobs that no rig has run.
NO_RIG = "no-rig"


def junit_xml(run: RunRecord) -> bytes:
    """The whole document, UTF-8."""
    root = Element("testsuites", {"name": _clean(run.suite), "time": f"{run.seconds:.3f}"})
    by_rig: dict[str, list[JobRecord]] = {}
    for job in run.jobs:
        by_rig.setdefault(job.rig or NO_RIG, []).append(job)
    total: dict[str, int] = {}
    for rig, jobs in sorted(by_rig.items()):
        for name, count in _suite(root, run, rig, jobs).items():
            total[name] = total.get(name, 0) + count
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(total.get(name, 0)))
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _suite(root: Element, run: RunRecord, rig: str, jobs: list[JobRecord]) -> dict[str, int]:
    """Append one rig's suite; its counts."""
    suite = SubElement(root, "testsuite", {"name": _clean(rig), "timestamp": run.started.rstrip("Z")})
    suite.set("hostname", _clean(run.host))
    known = next((record for record in run.rigs if record.name == rig), None)
    properties = {"suite": run.suite, "run": run.run_id, "harness": run.harness_version}
    if known is not None:
        properties |= {"board": known.board, "probe_uid": known.probe_uid, "benched": known.benched}
    _properties(suite, properties)
    for job in jobs:
        for case in _cases(job, [record for record in run.upgrades if _compares(record, job)]):
            suite.append(case)
    cases = suite.findall("testcase")
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", f"{sum(job.seconds for job in jobs):.3f}")
    return counts


def _compares(record: UpgradeRecord, job: JobRecord) -> bool:
    """Whether the comparison of two libraries is of this job and another."""
    same = (record.model, record.board) == (job.model, job.board)
    return bool(job.tflm) and same and job.kernels in record.kernels.split(" -> ")


def _cases(job: JobRecord, upgrades: Sequence[UpgradeRecord]) -> list[Element]:
    """One case per metric; a job that measured nothing is one case, ``model.job``."""
    if not job.metrics:
        return [_case(job, "job", None, upgrades)]
    return [_case(job, metric.name, metric, upgrades) for metric in job.metrics]


def _case(job: JobRecord, name: str, metric: MetricRecord | None, upgrades: Sequence[UpgradeRecord]) -> Element:
    repeat = f"#{job.repeat}" if job.repeat > 1 else ""
    kernels = f".{job.kernels}" if job.kernels else ""
    tflm = f".tflm={job.tflm}" if job.tflm else ""
    case = Element(
        "testcase",
        {
            "classname": _clean(f"{job.board or 'rig'}{kernels}{tflm}"),
            "name": _clean(f"{job.model}.{name}{repeat}"),
            # the time is the job's: told once, so that sums are right
            "time": f"{job.seconds if metric is None or metric is job.metrics[0] else 0:.3f}",
        },
    )
    properties = {
        "status": job.status.value,
        "rig": job.rig,
        "probe_uid": job.probe_uid,
        "build_id": job.build_id,
        "tflm_commit": job.conditions.tflm_commit,
        "kernels": job.kernels,
        "attempts": str(len(job.attempts)),
    }
    if metric is not None:
        properties |= {"value": _number(metric.value), "baseline": _number(metric.baseline), "unit": metric.unit}
    if job.status is JobStatus.FLAKY:
        properties["flaky"] = job.reason
    properties |= {f"upgrade.{title}": value for record in upgrades for title, value in _upgraded(record, name)}
    _properties(case, properties)
    _outcome(case, job, metric)
    lines = [line for record in upgrades for line in upgrade_text.lines(record)]
    lines += [
        f"attempt {attempt.number} on {attempt.rig}: {attempt.status}"
        + (f": {attempt.error.code}: {attempt.error.message}" if attempt.error else "")
        for attempt in job.attempts
    ]
    if lines:
        SubElement(case, "system-out").text = _clean("\n".join([*lines, *job.protocol_tail]))
    return case


def _upgraded(record: UpgradeRecord, name: str) -> Iterator[tuple[str, str]]:
    """What a comparison says of the case's metric, and whether there is one at all."""
    yield "tflm", f"{record.before} -> {record.after}"
    yield "problem", record.problem
    for term in record.bytes:
        if term.name == name:
            yield from (("before", _number(term.before)), ("after", _number(term.after)), ("why", term.explanation))


def _outcome(case: Element, job: JobRecord, metric: MetricRecord | None) -> None:
    if metric is not None:
        if metric.status is MetricStatus.FAILED:
            _fault(case, "failure", metric.message, metric.status.value)
        elif metric.status is MetricStatus.NOT_MEASURED:
            SubElement(case, "skipped", {"message": _clean(metric.message)})
    elif job.status is JobStatus.FAILED:
        _fault(case, "failure", job.reason, job.status.value, job.remedy)
    elif job.status in {JobStatus.ERROR, JobStatus.BLOCKED}:
        _fault(case, "error", job.reason, job.status.value, job.remedy)
    elif job.status is JobStatus.SKIPPED:
        SubElement(case, "skipped", {"message": _clean(job.reason)})


def _fault(case: Element, tag: str, message: str, kind: str, remedy: str = "") -> None:
    fault = SubElement(case, tag, {"message": _clean(message), "type": kind})
    fault.text = _clean(f"{message}\n{remedy}" if remedy else message)


def _properties(parent: Element, values: dict[str, str]) -> None:
    holder = SubElement(parent, "properties")
    for name, value in values.items():
        if value:
            SubElement(holder, "property", {"name": name, "value": _clean(value)})


def _number(value: float | int | None) -> str:
    return "" if value is None else str(value)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
