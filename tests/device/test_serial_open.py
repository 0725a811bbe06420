"""A port that cannot be opened: what to look at depends on where the port is."""

from __future__ import annotations

import socket

import pytest

from harness.errors import LinkError
from harness.link.serial_link import SerialLink


def test_a_port_of_another_computer_is_not_looked_for_among_the_own_ones() -> None:
    with socket.socket() as held:  # bound, so that nobody else gets the port, and not listened on
        held.bind(("127.0.0.1", 0))
        with pytest.raises(LinkError) as caught:
            SerialLink(f"socket://127.0.0.1:{held.getsockname()[1]}", 115200)
    assert caught.value.code == "link.open"
    assert "serves this port" in caught.value.remedy
