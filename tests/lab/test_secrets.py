"""Passwords of URLs: in no message, whatever goes wrong with the port."""

from __future__ import annotations

import traceback

import pytest

from harness.errors import LinkError
from harness.link.serial_link import SerialLink

from .conftest import silent_port


@pytest.mark.parametrize(
    "url",
    [
        "rfc2217://lab:s3cret@127.0.0.1:{port}",
        "socket://lab:s3cret@127.0.0.1:{port}",
        "socket://lab:s3cret@no-such-host.invalid:{port}",
        "nonsense://lab:s3cret@127.0.0.1:{port}",
        "socket://lab:s3cret@127.0.0.1:{port}/?logging=never",
        "socket://lab:s3cret@[broken:{port}",
        "socket://127.0.0.1:{port}/?password=s3cret",
        "socket://[broken:{port}/?token=s3cret",
    ],
)
def test_a_port_that_does_not_open_tells_no_password(url: str) -> None:
    with silent_port() as port, pytest.raises(LinkError) as error:
        SerialLink(url.format(port=port))
    told = "".join(traceback.format_exception(error.value))
    assert "s3cret" not in told
    assert "s3cret" not in error.value.message
    assert "***" in error.value.message
