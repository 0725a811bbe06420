"""The processor cores that a plan can be made for, and the features by which CMSIS-NN chooses its buffers."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import UsageError


@dataclass(frozen=True, slots=True)
class Core:
    """``dsp``: GCC defines __ARM_FEATURE_DSP, so CMSIS-NN defines ARM_MATH_DSP (arm_nn_math_types.h). ``mve``: the same
    for __ARM_FEATURE_MVE and ARM_MATH_MVEI, which comes before DSP in every buffer size."""

    name: str
    dsp: bool = False
    mve: bool = False


#: What ``-mcpu=NAME`` gives with arm-none-eabi-gcc. DSP is optional on M33 and M35P, and on by default.
CORES = {
    core.name: core
    for core in (
        Core("host"),
        Core("cortex-m0"),
        Core("cortex-m0plus"),
        Core("cortex-m1"),
        Core("cortex-m3"),
        Core("cortex-m4", dsp=True),
        Core("cortex-m7", dsp=True),
        Core("cortex-m23"),
        Core("cortex-m33", dsp=True),
        Core("cortex-m35p", dsp=True),
        Core("cortex-m52", dsp=True, mve=True),
        Core("cortex-m55", dsp=True, mve=True),
        Core("cortex-m85", dsp=True, mve=True),
    )
}


def core_named(name: str) -> Core:
    """``host``, ``cortex-m4``, ``cortex-m33+nodsp``, ``cortex-m55+nomve``; ``+fp`` and ``+nofp`` change nothing here.

    Raises UsageError for a core that is not in the list.
    """
    plain, *extensions = name.lower().replace("m0+", "m0plus").split("+")
    core = CORES.get(plain) or CORES.get(f"cortex-{plain}")
    if core is None or not set(extensions) <= {"nodsp", "nomve", "fp", "nofp", "sfp", "nomve.fp"}:
        raise UsageError(f"no core is named {name}", remedy=f"the cores are {', '.join(CORES)}, and cortex-m33+nodsp")
    dsp = core.dsp and "nodsp" not in extensions
    return Core("+".join((core.name, *extensions)), dsp=dsp, mve=core.mve and dsp and "nomve" not in extensions)
