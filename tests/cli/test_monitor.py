"""``harness monitor``: what arrives at a port, decoded."""

from __future__ import annotations

import socket
import sys
import threading

import pytest

from harness.cli.main import main
from harness.wire.frame import encode_frame
from harness.wire.messages import RefusalReason, Refused, boot_line, to_frame


def test_text_frames_and_damage_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    frame = encode_frame(to_frame(Refused(RefusalReason.UNSUPPORTED, detail="no\x1b[2J"), 0xABCD, 7))
    sent = boot_line("host", bytes(16)) + frame + frame[:-3] + b"\x00" + b"tail of text\r\n"
    with socket.create_server(("127.0.0.1", 0)) as server:
        device = threading.Thread(target=_repeat, args=(server, sent))
        device.start()
        assert main(["monitor", f"socket://127.0.0.1:{server.getsockname()[1]}", "--for", "30"]) == 6
        device.join()
    out, err = capsys.readouterr()
    assert "is gone" in err
    lines = {line.strip().split("  ", 1)[1] for line in out.splitlines()}
    assert f"text: tflm-harness 1.1 board=host build={'00' * 16}" in lines
    refused = "Refused #7 of session 0000abcd: reason=unsupported major=1 minor=1 detail="
    assert any(line.startswith(refused) for line in lines)
    assert "\x1b" not in out
    assert any(line.startswith("noise, ") for line in lines)
    assert "text: tail of text" in lines


def _repeat(server: socket.socket, data: bytes) -> None:
    """A device that says the same again and again (pyserial drops what arrives while it opens), then hangs up."""
    connection, _ = server.accept()
    for _ in range(20):
        connection.sendall(data + b"\0")
        threading.Event().wait(0.02)
    connection.close()


@pytest.mark.skipif(sys.platform == "win32", reason="names of serial ports are others there")
def test_a_port_that_is_not_there_is_exit_6(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "/dev/ttyNOPE0"]) == 6
    assert "there is no port /dev/ttyNOPE0" in capsys.readouterr().err
