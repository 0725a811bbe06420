"""``harness monitor``: what arrives at a port, decoded."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

import pytest

from harness.cli.main import main
from harness.wire.frame import encode_frame
from harness.wire.messages import RefusalReason, Refused, boot_line, to_frame
from tests.patience import PATIENCE_S, patient


def test_text_frames_and_damage_are_told_apart() -> None:
    """The device hangs up when all that it says again and again has been shown."""
    frame = encode_frame(to_frame(Refused(RefusalReason.UNSUPPORTED, detail="no\x1b[2J"), 0xABCD, 7))
    sent = boot_line("host", bytes(16)) + frame + frame[:-3] + b"\x00" + b"tail of text\r\n"
    wanted = [
        f"text: tflm-harness 1.2 board=host build={'00' * 16}",
        "Refused #7 of session 0000abcd: reason=unsupported major=1 minor=2 detail=",
        "noise, ",
        "text: tail of text",
    ]
    heard = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        device = threading.Thread(target=_repeat, args=(server, sent, heard))
        device.start()
        command = [sys.executable, "-m", "harness", "monitor", f"socket://127.0.0.1:{server.getsockname()[1]}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            assert "\x1b" not in line
            shown = line.strip().split("  ", 1)[1]
            wanted = [start for start in wanted if not shown.startswith(start)]
            if not wanted:
                heard.set()
        heard.set()
        _, err = process.communicate(timeout=PATIENCE_S)
        device.join()
    assert wanted == []
    assert process.returncode == 6
    assert "is gone" in err


def _repeat(server: socket.socket, data: bytes, heard: threading.Event) -> None:
    """A device that says the same again and again (pyserial drops what arrives while it opens) until it was heard."""
    server.settimeout(PATIENCE_S)
    connection, _ = server.accept()
    deadline = patient()
    while not heard.wait(0.02) and not deadline.passed:
        connection.sendall(data + b"\0")
    connection.close()


@pytest.mark.skipif(sys.platform == "win32", reason="names of serial ports are others there")
def test_a_port_that_is_not_there_is_exit_6(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "/dev/ttyNOPE0"]) == 6
    assert "there is no port /dev/ttyNOPE0" in capsys.readouterr().err
