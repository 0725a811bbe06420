"""The link of a rig that is not talked to: nothing is opened, so that whoever has the port keeps it."""

from __future__ import annotations

from typing import NoReturn

from harness.deadline import Deadline


class NoLink:
    """Implements ``Link``. To read or write is a bug of the caller."""

    def write(self, data: bytes, deadline: Deadline) -> NoReturn:  # noqa: ARG002
        raise AssertionError("a rig that was opened without its line is not talked to")

    def read(self, deadline: Deadline) -> NoReturn:  # noqa: ARG002
        raise AssertionError("a rig that was opened without its line is not listened to")

    def discard_input(self) -> None:
        """There is none."""

    def close(self) -> None:
        """Nothing was opened."""
