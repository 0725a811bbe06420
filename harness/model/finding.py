"""What a check has to say about a model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    INFO = "info"
    WARNING = "warning"
    REFUSED = "refused"  # TFLM cannot run the model, or would run it wrongly


class Verdict(Enum):
    OK = "ok"
    WARNINGS = "warnings"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Finding:
    """``code`` is a stable machine name (docs/checks.md lists all), ``where`` names the place in the model
    (``subgraph 0, operator 3 (CONV_2D), tensor 7``), ``remedy`` is one sentence that says what to do."""

    code: str
    severity: Severity
    where: str
    message: str
    remedy: str = ""


def verdict_of(findings: tuple[Finding, ...]) -> Verdict:
    """The worst finding decides; findings of severity info leave a model ok."""
    severities = {finding.severity for finding in findings}
    if Severity.REFUSED in severities:
        return Verdict.REFUSED
    return Verdict.WARNINGS if Severity.WARNING in severities else Verdict.OK
