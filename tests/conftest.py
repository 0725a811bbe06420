"""Fixtures that every room's tests may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does: no test fails for that.
settings.register_profile("harness", deadline=None)
settings.load_profile("harness")

ROOT = Path(__file__).resolve().parent.parent


def find_shared() -> Path | None:
    """The folder of real models, goldens and handed cases: HARNESS_SHARED, or ``../shared`` beside the checkout."""
    named = os.environ.get("HARNESS_SHARED")
    folder = Path(named) if named else ROOT.parent / "shared"
    return folder if (folder / "cases").is_dir() else None


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    folder = find_shared()
    if folder is None:
        pytest.skip("the real models are not here: name their folder in HARNESS_SHARED")
    return folder
