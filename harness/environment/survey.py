"""The whole survey: every part, in the order in which a person reads it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from harness.environment.devices import port_parts, probe_parts
from harness.environment.packages import (
    BACKENDS,
    TFLM,
    TFLM_MODULE,
    declared_requirements,
    loads,
    package_parts,
    python_part,
)
from harness.environment.part import Part
from harness.environment.tflm_libraries import tflm_library_parts
from harness.environment.toolchain import toolchain_parts


def survey() -> list[Part]:
    """Looks at everything; the slow looks (child processes) run side by side. Opens no port and no probe."""
    modules = {**BACKENDS, TFLM: TFLM_MODULE}
    with ThreadPoolExecutor() as pool:
        packages = package_parts(declared_requirements())
        loaded = [pool.submit(loads, part, modules[part.name]) for part in packages if part.name in modules]
        others = [pool.submit(look) for look in (toolchain_parts, tflm_library_parts, port_parts, probe_parts)]
        plain = [part for part in packages if part.name not in modules]
        parts = [python_part(), *plain, *(future.result() for future in loaded)]
        for future in others:
            parts += future.result()
    return parts
