"""Fixtures that every room's tests may use."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import register

register()

# Whoever runs the tests in the background may ignore Ctrl-C, and what they start inherits that: some of them send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each worker's own lock files, registered libraries and lab file, in place of the user's: rigs of one name in two
    workers would keep each other out. Compiled objects are shared by the workers, as they are by a user's commands."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as environment:
        for kind, folder in (("STATE", own), ("DATA", own), ("CONFIG", own), ("CACHE", shared)):
            environment.setenv(f"XDG_{kind}_HOME", str(folder / f"home-{kind.lower()}"))
        yield
