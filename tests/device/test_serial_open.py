"""A port that cannot be opened: what to look at depends on where the port is."""

from __future__ import annotations

import socket

import pytest

from harness.errors import LinkError
from harness.link.serial_link import SerialLink


def test_a_port_of_another_computer_is_not_looked_for_among_the_own_ones() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
    with pytest.raises(LinkError) as caught:
        SerialLink(f"socket://127.0.0.1:{number}", 115200)
    assert caught.value.code == "link.open"
    assert "serves this port" in caught.value.remedy
