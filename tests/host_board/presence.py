"""The host board needs Linux and the tflite-micro package."""

from __future__ import annotations

import importlib.util
import sys

import pytest

needs_host_board = pytest.mark.skipif(
    not sys.platform.startswith("linux") or importlib.util.find_spec("tflite_micro") is None,
    reason="the host board needs Linux and the tflite-micro package",
)
