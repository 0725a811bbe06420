"""The first boot after flashing: does it answer, and if not, what does the line tell?"""

from __future__ import annotations

from harness.deadline import Deadline
from harness.device.bench import Bench
from harness.device.client import RebootedError, SilenceError
from harness.device.line_diagnosis import explain_silence
from harness.rig.opening import OpenRig
from harness.sweep.interview import About, interview
from harness.wire.messages import Hello


def meet(bench: Bench, rig: OpenRig, deadline: Deadline, warnings: list[str]) -> tuple[Hello, About]:
    """Boot, and ask the device about itself. One reboot meanwhile (a dip of the supply) is noted."""
    hello = first_boot(bench, rig, deadline)
    try:
        return hello, interview(bench.device, deadline)
    except RebootedError as exc:
        warnings.append(f"the device rebooted while it was asked about itself: {exc.message}")
    return bench.boot(deadline), interview(bench.device, deadline)


def first_boot(bench: Bench, rig: OpenRig, deadline: Deadline) -> Hello:
    """Boot the image that was just flashed. Where nothing answers, try other rates and say what they tell."""
    try:
        return bench.boot(deadline)
    except SilenceError as silent:
        if rig.line is None or rig.board.kind == "host":
            raise
        reason = explain_silence(rig.probe, rig.line, bench.device, deadline)
        if reason is None:
            raise
        raise reason from silent
