"""The suite file: which models run on which boards, what is measured, and what must hold. Strict records."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from harness.board.strict_yaml import load_yaml
from harness.errors import ConfigError
from harness.lab.limits import Limit, parse_limit
from harness.lab.metrics import DEFAULT_METRICS, METRICS, Kind
from harness.units import quoted

_REMEDY = "docs/lab.md describes every key; harness regress --schema prints the schema for editors"

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z", max_length=80)]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86400)]
#: Of the output's quantisation.
Steps = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Kernels = Literal["reference", "cmsis_nn"]


class SuiteError(ConfigError):
    """A suite file does not say what it must."""

    default_code = "suite.invalid"


class Tolerance(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How far a value may be from its baseline: the largest of the three. ``sigma`` counts standard deviations of the
    same rig's own history."""

    relative_percent: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.0
    absolute: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    sigma: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0


#: What is wrong where ``is_idle``.
SIGMA_IS_FOR_TIMES = "sigma is for times, which have noise: bytes have none, give relative_percent or absolute"


def is_idle(metric: str, tolerance: Tolerance) -> bool:
    """Whether the tolerance counts the noise of a metric that has none: it would have no effect."""
    return metric in METRICS and METRICS[metric].kind is not Kind.TIMING and tolerance.sigma > 0


class BaselineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``folder`` is relative to the suite file; "" means results/baselines. ``missing``: what a job is whose number has
    no baseline. ``improved``: what it is when the number is better by more than the tolerance."""

    folder: str = ""
    missing: Literal["fail", "warn", "ignore"] = "warn"
    improved: Literal["pass", "fail"] = "pass"


class ModelEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``path`` is relative to the suite file and may be a glob; ``name`` and ``sha256`` are for a single file.
    ``tolerance_steps``: how far outputs may be from LiteRT's, as ``--tolerance`` of ``harness sweep``."""

    path: Annotated[str, msgspec.Meta(min_length=1)]
    name: Name | None = None
    sha256: Sha256 | None = None
    tags: tuple[Name, ...] = ()
    boards: tuple[str, ...] | None = None
    measure: tuple[str, ...] | None = None
    limits: tuple[str, ...] = ()
    tolerances: dict[str, Tolerance] = {}
    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    fill: float | None = None
    inputs: tuple[str, ...] = ()
    step_bytes: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None
    repeat: Count | None = None
    timeout_s: Seconds | None = None
    trial_timeout_s: Seconds | None = None
    tolerance_steps: Steps | None = None


class TargetEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where models run: any rig with this ``board``, or the one called ``rig``; once per kernel set."""

    board: str | None = None
    rig: str | None = None
    kernels: tuple[Kernels, ...] = ()
    tags: tuple[Name, ...] = ()


class Suite(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One suite file. ``retries``: tries after the first one, for errors of rigs and links. ``bench_after``: that many
    such errors in a row take a rig out of the run. ``runs``: timed Invokes where a time is measured. ``certify``: prove
    each minimum in firmwares whose arena is a constant."""

    name: Name
    models: Annotated[tuple[ModelEntry, ...], msgspec.Meta(min_length=1)]
    boards: Annotated[tuple[str | TargetEntry, ...], msgspec.Meta(min_length=1)]
    kernels: tuple[Kernels, ...] = ()
    measure: tuple[str, ...] = DEFAULT_METRICS
    limits: tuple[str, ...] = ()
    tolerances: dict[str, Tolerance] = {}
    baselines: BaselineSettings = BaselineSettings()
    seed: Annotated[int, msgspec.Meta(ge=0)] = 1
    step_bytes: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 16
    runs: Annotated[int, msgspec.Meta(ge=1, le=100000)] = 10
    certify: bool = False
    repeat: Count = 1
    retries: Annotated[int, msgspec.Meta(ge=0, le=10)] = 2
    bench_after: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    timeout_s: Seconds = 600.0
    trial_timeout_s: Seconds = 20.0
    tolerance_steps: Steps | None = None

    def metrics_of(self, model: ModelEntry) -> tuple[str, ...]:
        """What is measured, and what a limit speaks of."""
        named = self.measure if model.measure is None else model.measure
        return tuple(dict.fromkeys((*named, *(limit.metric for limit in self.limits_of(model)))))

    def limits_of(self, model: ModelEntry) -> tuple[Limit, ...]:
        return tuple(parse_limit(text) for text in (*self.limits, *model.limits))

    def tolerance_of(self, model: ModelEntry, metric: str) -> Tolerance | None:
        return model.tolerances.get(metric) or self.tolerances.get(metric)

    @property
    def targets(self) -> tuple[TargetEntry, ...]:
        entries = (TargetEntry(board=entry) if isinstance(entry, str) else entry for entry in self.boards)
        return tuple(msgspec.structs.replace(entry, kernels=entry.kernels or self.kernels) for entry in entries)


def read_suite(path: Path) -> Suite:
    """Raises SuiteError with file and key."""
    values = load_yaml(path, SuiteError)
    try:
        suite = msgspec.convert(values, Suite, strict=True)
    except msgspec.ValidationError as exc:
        raise SuiteError(f"{path}: {exc}", remedy=_REMEDY) from exc
    for at, where in _problems(suite):
        raise SuiteError(f"{path}: {where} - `{at}`", remedy=_REMEDY)
    return suite


def suite_schema() -> dict[str, Any]:
    """JSON schema of a suite file, for editors."""
    return msgspec.json.schema(Suite)


def baselines_folder(suite: Suite, suite_path: Path, results: Path) -> Path:
    """Where the baselines of a suite lie; a folder in the suite is relative to its file."""
    if not suite.baselines.folder:
        return results / "baselines"
    return Path(os.path.normpath(suite_path.parent / suite.baselines.folder))


def _absent_boards(suite: Suite, at: int, model: ModelEntry) -> Iterator[tuple[str, str]]:
    """Boards of a model's own list that the suite does not run on: such a model would silently run on fewer."""
    places = [str(target.board or target.rig) for target in suite.targets]
    for name in model.boards or ():
        if name not in places:
            near = difflib.get_close_matches(name, places, n=1) or places
            yield (
                f"$.models[{at}].boards",
                f"the suite's boards have no {quoted(name)}; they have {', '.join(map(quoted, near))}",
            )


def _problems(suite: Suite) -> list[tuple[str, str]]:
    """What the types cannot say: (place, text)."""
    found: list[tuple[str, str]] = []
    for at, entry in enumerate(suite.boards):
        if isinstance(entry, TargetEntry) and (entry.board is None) == (entry.rig is None):
            found.append((f"$.boards[{at}]", "name a board or a rig, not both and not neither"))
    measured = [("$.measure", suite.measure)]
    tolerances = [("$.tolerances", suite.tolerances)]
    for at, model in enumerate(suite.models):
        measured.append((f"$.models[{at}].measure", model.measure or ()))
        tolerances.append((f"$.models[{at}].tolerances", model.tolerances))
        found += _absent_boards(suite, at, model)
    for where, names in (*measured, *((where, tuple(known)) for where, known in tolerances)):
        unknown = [name for name in names if name not in METRICS]
        if unknown:
            found.append((where, f"there is no metric {quoted(unknown[0])}; metrics are {', '.join(METRICS)}"))
    for where, known in tolerances:
        found += [(f"{where}.{name}", SIGMA_IS_FOR_TIMES) for name, entry in known.items() if is_idle(name, entry)]
    for model in suite.models:
        suite.limits_of(model)
    return found
