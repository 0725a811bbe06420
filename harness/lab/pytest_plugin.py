"""The pytest plugin: firmware teams hold their models against a board in their own tests.

```python
def test_kws_fits(harness_sweep):
    assert harness_sweep("kws.tflite").min_bytes <= 96 * 1024
```

Loaded by every pytest in the environment, so nothing of harness is imported before a fixture is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.board.lab_file import RigEntry
    from harness.record.schema import SweepRecord

#: Names a rig of the lab file, as ``--harness-rig`` does.
RIG_VARIABLE = "HARNESS_RIG"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("harness", "TensorFlow Lite Micro on boards")
    group.addoption("--harness-rig", metavar="NAME", help=f"Rig of the lab file (default: ${RIG_VARIABLE}).")
    group.addoption("--harness-board", metavar="NAME", help="Board, where no rig is named (default: host).")
    group.addoption("--harness-lab", metavar="PATH", help="The lab file (default: lab.yaml here, or the user's).")
    group.addoption("--harness-results", metavar="DIR", default="results", help="Where records are kept.")


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found. Sizes are bytes; ``record`` holds everything. ``used_bytes`` is arena_used_bytes(), which is
    not the minimum; ``planned_min_bytes`` is None where there is no plan, ``invoke_cycles`` (the median of timed runs)
    where nothing was timed."""

    min_bytes: int
    used_bytes: int | None
    planned_min_bytes: int | None
    unexplained_bytes: int | None
    invoke_cycles: int | None
    record: SweepRecord


SweepFunction = Callable[..., Sweep]


@pytest.fixture(scope="session")
def harness_rig(request: pytest.FixtureRequest) -> RigEntry:
    """The rig that sweeps run on: the one that is named, or the first of the board; skips where the lab has none."""
    from harness.board.lab_file import RigEntry, find_lab

    option = request.config.getoption
    path = option("--harness-lab")
    lab = find_lab(Path(path) if path else None)
    board = option("--harness-board")
    name = option("--harness-rig") or ("" if board else os.environ.get(RIG_VARIABLE))
    if name:
        if lab is None:
            pytest.fail(f"there is no lab file that could have a rig {name}", pytrace=False)
        return lab.rig(name)
    board = board or "host"
    for entry in lab.rigs if lab else ():
        if entry.board == board:
            return entry
    return RigEntry(name=board.replace(":", "-"), board=board)


@pytest.fixture(scope="session")
def harness_sweep(request: pytest.FixtureRequest, harness_rig: RigEntry) -> Iterator[SweepFunction]:
    """``harness_sweep(model, kernels=None, step_bytes=16, seed=1, runs=None, timeout_s=600)``: the model's `Sweep`
    on the rig. ``runs`` timed Invokes; None: some on a chip or twin, none on the host board.

    Relative paths start at pytest's root folder. A model that has no minimum fails the test with the reason. The same
    sweep is run once a session.
    """
    results = request.config.rootpath / request.config.getoption("--harness-results")
    done: dict[tuple[Any, ...], SweepRecord] = {}

    def sweep(model: str | Path, **options: Any) -> Sweep:
        __tracebackhide__ = True
        _require_options(options)
        path = request.config.rootpath / model
        key = (path, *sorted(options.items()))
        if key not in done:
            done[key] = _sweep(path, harness_rig, results, **options)
        return _result(done[key])

    yield sweep


#: Option of ``harness_sweep`` → what it may be, and whether a value is that; as for ``harness sweep``.
_OPTIONS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "kernels": ("None, 'reference' or 'cmsis_nn'", lambda value: value in {None, "reference", "cmsis_nn"}),
    "step_bytes": ("a whole number of bytes from 1", lambda value: _is_whole(value, 1, None)),
    "seed": ("a whole number from 0 to 2**64 - 1", lambda value: _is_whole(value, 0, 2**64 - 1)),
    "runs": ("None, or a whole number from 0", lambda value: value is None or _is_whole(value, 0, 1_000_000)),
    "timeout_s": ("seconds from 0.1", lambda value: isinstance(value, int | float) and 0.1 <= value < float("inf")),
}


def _is_whole(value: object, least: int, most: int | None) -> bool:
    return isinstance(value, int) and least <= value and (most is None or value <= most)


def _require_options(options: dict[str, Any]) -> None:
    """Raises TypeError for an option that there is not, ValueError for a value that it cannot have."""
    __tracebackhide__ = True
    for name, value in options.items():
        if name not in _OPTIONS:
            raise TypeError(f"harness_sweep has no option {name!r}; its options are {', '.join(_OPTIONS)}")
        wanted, fits = _OPTIONS[name]
        if not fits(value):
            raise ValueError(f"harness_sweep: {name}={value!r} is not {wanted}")


def _sweep(
    path: Path,
    rig: RigEntry,
    results: Path,
    *,
    kernels: str | None = None,
    step_bytes: int = 16,
    seed: int = 1,
    runs: int | None = None,
    timeout_s: float = 600.0,
) -> SweepRecord:
    from harness.inputs import InputChoice
    from harness.sweep.flow import keep_record, sweep_model
    from harness.sweep.request import SilentProgress, SweepRequest

    request = SweepRequest(
        model_path=path,
        board=rig.board,
        kernels=kernels,
        inputs=InputChoice(seed),
        step_bytes=step_bytes,
        runs=runs,
        timeout_s=timeout_s,
        results=results,
        rig=None if rig.board == "host" else rig,
    )
    return keep_record(sweep_model(request, SilentProgress()))


def _result(record: SweepRecord) -> Sweep:
    from harness.lab.metrics import METRICS

    minimum = record.search.min_bytes if record.search else None
    if record.error is not None or minimum is None:
        error = record.error
        reason = f"{error.code}: {error.message}\n{error.remedy}" if error else "the search did not end"
        pytest.fail(f"{record.model.path} on {record.board}: {reason}", pytrace=False)
    values = {name: metric.take(record) for name, metric in METRICS.items()}

    def whole(name: str) -> int | None:
        value = values[name]
        return None if value is None else int(value)

    return Sweep(
        min_bytes=minimum,
        used_bytes=whole("arena_used_bytes"),
        planned_min_bytes=whole("planned_min_bytes"),
        unexplained_bytes=whole("unexplained_bytes"),
        invoke_cycles=whole("invoke_cycles"),
        record=record,
    )
