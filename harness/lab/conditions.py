"""The conditions of a result: what must be equal for two numbers to be comparable, and what is not."""

from __future__ import annotations

from dataclasses import dataclass

from harness.lab.metrics import Kind
from harness.record.lab_run import ConditionsRecord
from harness.record.schema import EnvironmentRecord, SweepRecord

#: Field of the conditions → how a sentence calls it.
_TITLES = {
    "kernels": "kernel set",
    "tflm_commit": "TFLM commit",
    "toolchain": "toolchain",
    "optimise": "optimisation",
    "interpreter": "interpreter",
    "timing": "unit of the counter",
    "clock_hz": "clock",
    "arena_region": "arena region",
    "caches": "caches",
    "inputs": "inputs",
    "step_bytes": "step of the search",
    "model_sha256": "model file",
}
#: Digits of a hash in a title.
_TITLED_HASH = 12
#: A baseline is kept for each of these; another one is another baseline, not a change.
KEY = ("kernels", "tflm_commit", "toolchain")
#: What else must be equal for a number of each kind.
_MUST_EQUAL = {
    Kind.ARENA: (*KEY, "interpreter"),
    Kind.SEARCH: (*KEY, "interpreter", "step_bytes", "inputs"),
    Kind.MEMORY: (*KEY, "interpreter", "optimise"),
    Kind.TIMING: (*KEY, "interpreter", "optimise", "timing", "clock_hz", "arena_region", "caches", "inputs"),
}


def comparable_by(kind: Kind) -> tuple[str, ...]:
    """The fields that must be equal for numbers of this kind to be comparable."""
    return _MUST_EQUAL[kind]


def trend_conditions(kind: Kind) -> tuple[str, ...]:
    """What must be equal within one trend of this kind: the model file, and what a baseline needs, but for the TFLM
    commit, which a trend is there to follow."""
    return ("model_sha256", *(name for name in _MUST_EQUAL[kind] if name != "tflm_commit"))


def titled(name: str, value: object) -> str:
    """A condition in words: ``step of the search 64``. Of a hash its beginning tells enough."""
    return f"{_TITLES[name]} {_text(value)[:_TITLED_HASH] if name == 'model_sha256' else _text(value)}"


@dataclass(frozen=True, slots=True)
class Difference:
    """One condition that is not the same."""

    what: str
    here: str
    there: str

    def __str__(self) -> str:
        return f"{self.what}: {self.here} here, {self.there} in the baseline"


def differences(kind: Kind, here: ConditionsRecord, there: ConditionsRecord) -> list[Difference]:
    """Why numbers of this kind are not comparable; empty when they are."""
    found = []
    for name in _MUST_EQUAL[kind]:
        mine, theirs = getattr(here, name), getattr(there, name)
        if mine != theirs:
            found.append(Difference(_TITLES[name], _text(mine), _text(theirs)))
    return found


def key_of(conditions: ConditionsRecord) -> tuple[str, ...]:
    return tuple(getattr(conditions, name) for name in KEY)


def conditions_of(record: SweepRecord) -> ConditionsRecord:
    """What a sweep ran under, as far as its record says."""
    device, environment = record.device, record.environment
    return ConditionsRecord(
        kernels=record.kernels,
        tflm_commit=device.tflm_commit if device else "",
        toolchain=environment.compiler if environment else "",
        optimise=environment.optimisation if environment else "",
        interpreter=device.interpreter if device else "",
        timing=device.timing if device else "",
        clock_hz=device.clock_hz if device else None,
        arena_region=environment.arena_region if environment else "",
        caches=_caches(environment) if environment else "",
        inputs=record.inputs,
        step_bytes=record.search.step_bytes if record.search else None,
    )


def _caches(environment: EnvironmentRecord) -> str:
    """``icache on, dcache off, 5 wait states``; what the device did not tell is left out."""
    switches = {
        "icache": environment.icache_enabled,
        "dcache": environment.dcache_enabled,
        "flash accelerator": environment.flash_accelerator_enabled,
    }
    words = [f"{name} {'on' if on else 'off'}" for name, on in switches.items() if on is not None]
    if environment.flash_wait_states is not None:
        words.append(f"{environment.flash_wait_states} wait states")
    return ", ".join(words)


def _text(value: object) -> str:
    return "not known" if value in {None, ""} else str(value)
