"""Jobs: one model on one board with one kernel set, once. What a suite comes down to."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.lab.limits import Limit
from harness.lab.metrics import METRICS, Kind
from harness.lab.suite import ModelEntry, Suite, SuiteError, TargetEntry, Tolerance
from harness.units import quoted, safe_text


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model of the suite. ``problem`` says why its jobs cannot run: the file is missing, or not the pinned one."""

    name: str
    path: Path
    sha256: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """``id`` is the same in every run of the suite. ``board`` is empty where a ``rig`` is named; ``kernels`` is empty
    for the board's own choice. ``runs`` timed Invokes, 0 where no time is asked for. ``tflm`` names the TFLM library of
    an upgrade run."""

    id: str
    model: ModelFile
    entry: ModelEntry
    board: str
    rig: str
    kernels: str
    repeat: int
    tags: tuple[str, ...]
    metrics: tuple[str, ...]
    limits: tuple[Limit, ...]
    tolerances: dict[str, Tolerance]
    timeout_s: float
    trial_timeout_s: float
    step_bytes: int
    seed: int
    runs: int = 0
    certify: bool = False
    tolerance_steps: float | None = None
    tflm: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """What ``-k`` looks at."""
        return (self.id, *(f"tag:{tag}" for tag in self.tags))

    @property
    def slug(self) -> str:
        """The id as a folder's name; no two ids have the same."""
        readable = re.sub(r"[^A-Za-z0-9._-]+", "_", self.id)[:80]
        return f"{readable}-{hashlib.sha256(self.id.encode()).hexdigest()[:8]}"


def jobs_of(suite: Suite, suite_path: Path, *, repeat: int | None = None, tflm: Sequence[str] = ()) -> list[Job]:
    """Every job of the suite, models first. Raises SuiteError where two models have one name, or two jobs one id."""
    models = list(_models(suite, suite_path.parent))
    _require_names(suite_path, models)
    jobs = [
        _job(suite, suite_path, entry, model, target, kernels, number, library, label)
        for entry, model in models
        for target in suite.targets
        if _is_wanted(entry, target)
        for kernels in target.kernels or ("",)
        for library, label in _labels(tflm) or (("", ""),)
        for number in range(1, (repeat or entry.repeat or suite.repeat) + 1)
    ]
    twice = [job_id for job_id, count in Counter(job.id for job in jobs).items() if count > 1]
    if twice:
        raise SuiteError(f"{suite_path}: {twice[0]} is wanted twice", remedy="name each board and kernel set once")
    return jobs


def _labels(libraries: Sequence[str]) -> list[tuple[str, str]]:
    """(folder, what a job's id says): the last part of the folder where that tells them apart."""
    names = [Path(library).name for library in libraries]
    distinct = len(set(names)) == len(names)
    return list(zip(libraries, names if distinct else libraries, strict=True))


def _is_wanted(entry: ModelEntry, target: TargetEntry) -> bool:
    return entry.boards is None or (target.board or target.rig) in entry.boards


def _job(
    suite: Suite,
    suite_path: Path,
    entry: ModelEntry,
    model: ModelFile,
    target: TargetEntry,
    kernels: str,
    number: int,
    library: str,
    label: str,
) -> Job:
    place = target.board or f"rig:{target.rig}"
    parts = [model.name, place, kernels or "default", *([f"tflm={label}"] if label else [])]
    metrics = suite.metrics_of(entry)
    return Job(
        id="/".join(parts) + (f"#{number}" if number > 1 else ""),
        model=model,
        entry=_with_inputs(entry, suite_path.parent),
        board=target.board or "",
        rig=target.rig or "",
        kernels=kernels,
        repeat=number,
        tags=tuple(dict.fromkeys((*entry.tags, *target.tags))),
        metrics=metrics,
        limits=suite.limits_of(entry),
        tolerances={name: found for name in metrics if (found := suite.tolerance_of(entry, name))},
        timeout_s=entry.timeout_s or suite.timeout_s,
        trial_timeout_s=entry.trial_timeout_s or suite.trial_timeout_s,
        step_bytes=entry.step_bytes or suite.step_bytes,
        seed=suite.seed if entry.seed is None else entry.seed,
        runs=suite.runs if any(METRICS[name].kind is Kind.TIMING for name in metrics) else 0,
        certify=suite.certify,
        tolerance_steps=suite.tolerance_steps if entry.tolerance_steps is None else entry.tolerance_steps,
        tflm=library,
    )


def _with_inputs(entry: ModelEntry, folder: Path) -> ModelEntry:
    import msgspec

    return msgspec.structs.replace(entry, inputs=tuple(str(folder / name) for name in entry.inputs))


def _models(suite: Suite, folder: Path) -> Iterator[tuple[ModelEntry, ModelFile]]:
    for entry in suite.models:
        pattern = str(Path(entry.path).expanduser())
        # not Path.glob: it takes neither absolute patterns nor .. in them
        found = sorted(glob.glob(pattern, root_dir=folder, recursive=True))  # noqa: PTH207
        paths = found if glob.has_magic(pattern) else [pattern]
        if not paths:
            raise SuiteError(f"no file matches {quoted(entry.path)} in {folder}", remedy="check the glob in the suite")
        if len(paths) > 1 and (entry.name or entry.sha256):
            raise SuiteError(
                f"{quoted(entry.path)} matches {len(paths)} files, but has a name or a sha256",
                remedy="name and sha256 are for a single file: give each its own entry",
            )
        for path in paths:
            yield entry, _model_file(entry, Path(os.path.normpath(folder / path)))


def _model_file(entry: ModelEntry, path: Path) -> ModelFile:
    name = entry.name or re.sub(r"[^A-Za-z0-9_.-]+", "_", path.stem).lstrip("._-") or "model"
    if any("\ud800" <= char <= "\udfff" for char in str(path)):
        return ModelFile(name, path, "", f"the name of {safe_text(str(path))} is not UTF-8: rename the file")
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe or device may never end
            return ModelFile(name, path, "", f"{safe_text(str(path))} is not a regular file")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as exc:
        return ModelFile(name, path, "", f"cannot read {safe_text(str(path))}: {exc.strerror}")
    if entry.sha256 and digest != entry.sha256:
        return ModelFile(
            name, path, digest, f"{safe_text(str(path))} has sha256 {digest[:16]}…, pinned is {entry.sha256[:16]}…"
        )
    return ModelFile(name, path, digest)


def _require_names(suite_path: Path, models: Iterable[tuple[ModelEntry, ModelFile]]) -> None:
    seen: dict[str, Path] = {}
    for _, model in models:
        if model.name in seen:
            raise SuiteError(
                f"{suite_path}: {seen[model.name]} and {model.path} are both called {quoted(model.name)}",
                remedy="give one of them another name: in the suite",
            )
        seen[model.name] = model.path
