"""A lab run as annotations of a CI system: GitHub's workflow commands, GitLab's code quality report."""

from __future__ import annotations

import hashlib
from typing import Any

from harness.record.lab_run import JobRecord, JobStatus, RunRecord
from harness.units import safe_text

_LEVELS = {
    JobStatus.FAILED: "error",
    JobStatus.ERROR: "error",
    JobStatus.BLOCKED: "error",
    JobStatus.FLAKY: "warning",
    JobStatus.SKIPPED: "notice",
}
_SEVERITIES = {"error": "major", "warning": "minor", "notice": "info"}


def github_lines(run: RunRecord) -> list[str]:
    """Workflow commands, one a line. Escaped are % CR LF, and : and , in properties (docs.github.com)."""
    return [
        f"::{_LEVELS[job.status]} file={_property(run.suite_path)},title={_property(_title(job))}::"
        + _data("\n".join(safe_text(text, 2000) for text in (job.reason, job.remedy) if text))
        for job in run.jobs
        if job.status in _LEVELS
    ]


def gitlab_quality(run: RunRecord) -> list[dict[str, Any]]:
    """Entries of a code quality report (docs.gitlab.com: code quality, custom tool)."""
    return [
        {
            "description": "; ".join(
                safe_text(text, 500) for text in (f"{_title(job)}: {job.reason}", job.remedy) if text
            ),
            "check_name": f"harness-{job.status.value}",
            "fingerprint": hashlib.sha256(f"{job.id}\0{job.status.value}".encode(errors="replace")).hexdigest(),
            "severity": _SEVERITIES[_LEVELS[job.status]],
            "location": {"path": run.suite_path, "lines": {"begin": 1}},
        }
        for job in run.jobs
        if job.status in _LEVELS
    ]


def _title(job: JobRecord) -> str:
    return safe_text(f"{job.id} {job.status.value}" + (f" on {job.rig}" if job.rig else ""))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
