"""The record while it is being made: parts are filled in as they become known, and whatever is known is kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec

from harness import __version__
from harness.board.catalogue import BoardFileError, UnknownBoardError
from harness.errors import ExitCode, HarnessError, ModelFileError
from harness.model.graph import Model, joint_sha256
from harness.plan.arena import ArenaPlan
from harness.plan.shared import SharedPlan
from harness.record.schema import (
    CertificateRecord,
    DeviceRecord,
    EnvironmentRecord,
    ErrorRecord,
    LinkRecord,
    MeasuredRecord,
    ModelIdentity,
    NoReuseRecord,
    RecommendationRecord,
    ReferenceRecord,
    SearchRecord,
    SoakRecord,
    SweepRecord,
    TimingRecord,
)
from harness.sweep.request import SweepRequest
from harness.units import with_headroom

_NO_BOARD = (UnknownBoardError.default_code, BoardFileError.default_code)


@dataclass(slots=True)
class Draft:
    """``exit_code`` is what the command ends with when this is the only model. ``journal`` has nothing that the record
    will not have: it may go once that is written."""

    request: SweepRequest
    model: ModelIdentity
    shared_by: tuple[ModelIdentity, ...] = ()
    kernels: str = ""
    status: str = "ok"
    error: ErrorRecord | None = None
    exit_code: ExitCode = ExitCode.DONE
    inputs: str = ""
    plan: dict[str, Any] | None = None
    measured: MeasuredRecord | None = None
    search: SearchRecord | None = None
    reconciliation: dict[str, Any] | None = None
    reference: ReferenceRecord | None = None
    device: DeviceRecord | None = None
    environment: EnvironmentRecord | None = None
    link: LinkRecord | None = None
    timing: TimingRecord | None = None
    certificate: CertificateRecord | None = None
    no_reuse: NoReuseRecord | None = None
    soak: SoakRecord | None = None
    warnings: list[str] = field(default_factory=list)
    created: str = ""
    journal: Path | None = None
    _started_s: float = 0.0

    @classmethod
    def of(cls, request: SweepRequest) -> Draft:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        identity = ModelIdentity(_unicode(str(request.model_path)), "", 0)
        return cls(request, identity, kernels=request.kernels or "", created=now, _started_s=time.monotonic())

    @property
    def is_identified(self) -> bool:
        """Whether the model's bytes were read and its board is one: a record of an unreadable file, or of a board that
        nobody has, would say nothing."""
        no_board = self.error is not None and self.error.code in _NO_BOARD
        return bool(self.model.sha256) and not no_board

    def identify(self, models: Sequence[Model]) -> None:
        """``models`` are in one firmware and share its arena; usually there is one."""
        each = tuple(ModelIdentity(_unicode(model.path), model.sha256, model.size_bytes) for model in models)
        together = " + ".join(identity.path for identity in each)
        self.model = ModelIdentity(together, joint_sha256(models), sum(identity.bytes for identity in each))
        self.shared_by = each if len(each) > 1 else ()

    def take_plan(self, plan: ArenaPlan | SharedPlan) -> None:
        self.plan = {**plan.to_dict(), "model": msgspec.to_builtins(self.model)}

    def fail(self, exc: HarnessError) -> None:
        """The model's fault is *failed*, everything else *error*."""
        of_the_model = isinstance(exc, ModelFileError) or exc.exit_code is ExitCode.RESULT_BAD
        self.status = "failed" if of_the_model else "error"
        self.error = ErrorRecord(exc.code, _unicode(exc.message), _unicode(exc.remedy))
        self.exit_code = exc.exit_code

    def finish(self, record_path: str | None = None) -> SweepRecord:
        return SweepRecord(
            record_path=None if record_path is None else _unicode(record_path),
            created=self.created,
            harness_version=__version__,
            model=self.model,
            shared_by=self.shared_by,
            board=_unicode(self.request.board),
            kernels=self.kernels,
            variant=dict(self.request.variant),
            status=self.status,
            error=self.error,
            inputs=self.inputs,
            plan=self.plan,
            measured=self.measured,
            search=self.search,
            reconciliation=self.reconciliation,
            reference=self.reference,
            device=self.device,
            environment=self.environment,
            link=self.link,
            timing=self.timing,
            recommendation=self._recommendation(),
            certificate=self.certificate,
            no_reuse=self.no_reuse,
            soak=self.soak,
            warnings=tuple(_unicode(warning) for warning in self.warnings),
            seconds=round(time.monotonic() - self._started_s, 3),
        )

    def _recommendation(self) -> RecommendationRecord | None:
        if self.search is None or self.search.min_bytes is None:
            return None
        factor = self.request.headroom
        return RecommendationRecord(factor, with_headroom(self.search.min_bytes, factor))


def _unicode(text: str) -> str:
    """A text as JSON can hold it: bytes of a file name that are no UTF-8 become replacement characters."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
