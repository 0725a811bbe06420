"""Ctrl-C in a sweep whose rig cannot be closed any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import LinkError
from harness.sweep.flow import measure_model
from harness.sweep.request import SilentProgress, SweepRequest


class ClosingFails(SilentProgress):
    """As a rig whose port is gone when Ctrl-C closes it."""

    def stage(self, text: str) -> None:  # noqa: ARG002
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise LinkError("the port is gone", code="link.gone")  # noqa: B904


def test_an_interrupt_stays_one_when_closing_the_rig_fails() -> None:
    with pytest.raises(KeyboardInterrupt):
        measure_model(SweepRequest(Path("small.tflite"), "host"), ClosingFails())
