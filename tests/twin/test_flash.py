"""``harness flash`` on twins: what it hears of what runs, and what it says where it hears nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli.main import main
from tests.firmware.test_flashable import elf
from tests.patience import PATIENCE_S

from .bare_metal import compile_firmware
from .conftest import small_model

BOARD = "sim:nucleo-f446re"
Flash = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "small.tflite"
    path.write_bytes(small_model("a small model"))
    return path


@pytest.fixture(scope="module")
def built(
    request: pytest.FixtureRequest, model: Path, fake_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The ELF that ``harness build`` makes, by the transport that a test names."""
    out = tmp_path_factory.mktemp("built")
    argv = ["build", "--board", "nucleo-f446re", str(model), "--arena-capacity", "16384", "--transport", request.param]
    assert main([*argv, "--tflm", str(fake_library), "--out", str(out)]) == 0
    (elf,) = out.rglob("firmware.elf")
    return elf


@pytest.fixture
def flash(
    fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Flash:
    """``flash(...)``: exit code, stdout, stderr of the command on a twin."""
    monkeypatch.setenv("HARNESS_TFLM", str(fake_library))

    def run(*arguments: str | Path, board: str = BOARD) -> tuple[int, str, str]:
        capsys.readouterr()
        argv = ["flash", "--board", board, "--results", tmp_path / "results", "--timeout", int(PATIENCE_S), *arguments]
        code = main([str(one) for one in argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize("built", ["uart", "rtt"], indirect=True)
def test_an_elf_of_ours_is_asked_for_its_build_id(flash: Flash, built: Path) -> None:
    code, out, err = flash(built, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert len(document["build_id"]) == 32
    assert document["running_build_id"] == document["build_id"]
    assert document["not_asked"] is None


@pytest.mark.parametrize("built", ["uart"], indirect=True)
def test_an_elf_of_ours_that_is_silent_is_an_error(flash: Flash, built: Path) -> None:
    code, _, err = flash(built, "--sim-fault", "silent")
    assert code == 6
    assert "does not answer Hello" in err


def test_another_program_is_not_asked_and_that_is_said(flash: Flash, firmware_dir: Path) -> None:
    elf = compile_firmware("hello", "nucleo-f446re", firmware_dir)
    code, out, err = flash(elf, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert (document["build_id"], document["running_build_id"]) == (None, None)
    assert document["not_asked"] == "no harness firmware"
    assert "not asked what runs: no harness firmware" in flash(elf)[1]


@pytest.mark.parametrize("built", ["uart"], indirect=True)
def test_an_elf_of_ours_without_symbols_says_that_it_is_stripped(flash: Flash, built: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.elf"
    strip = shutil.which("arm-none-eabi-strip")
    assert strip is not None, "the compiler is here"
    subprocess.run([strip, "-o", bare, built], check=True, timeout=PATIENCE_S)
    code, out, err = flash(bare)
    assert code == 0, err
    assert "not asked what runs: the ELF has no symbol that tells its build id: it is stripped" in out


def test_a_wrong_clock_is_diagnosed_as_in_a_sweep(flash: Flash, model: Path) -> None:
    code, out, err = flash(model, "--sim-fault", "clock=0.5", "--json")
    assert code == 6
    error = json.loads(out)["error"]
    assert error["code"] == "device.wrong_clock"
    assert "answers at 57600 baud where 115200 were set up: its clock runs at half the speed" in error["message"]
    assert "cable" not in out + err


def test_silence_after_programming_names_the_rig_and_that_the_image_is_there(flash: Flash, model: Path) -> None:
    code, _, err = flash(model, "--sim-fault", "silent")
    assert code == 6
    assert "rig sim:nucleo-f446re: the device does not answer Hello" in err
    assert "the image was programmed and is verified (" in err


def test_a_source_and_a_restore_are_one_too_many(flash: Flash, model: Path) -> None:
    code, _, err = flash(model, "--restore", "kept.bin")
    assert code == 2
    assert "both were given" in err
    assert 'small.tflite" and --restore "kept.bin"' in err


def test_the_host_board_cannot_be_flashed(flash: Flash, model: Path) -> None:
    code, _, err = flash(model, board="host")
    assert code == 2
    assert "has no firmware" in err


def test_the_erasure_of_a_protected_chip_is_told_at_once_and_in_the_document(flash: Flash) -> None:
    erase = ("--erase-protected", "--yes")
    nrf = "sim:nrf52840dk"
    code, out, err = flash(*erase, "--sim-fault", "protected", "--json", board=nrf)
    assert code == 0, err
    assert json.loads(out)["erased"] is True
    assert "rig sim:nrf52840dk: the protected chip was erased whole" in err
    code, out, err = flash(*erase, "--json", board=nrf)
    assert code == 0, err
    assert json.loads(out)["erased"] is False
    assert "the chip is not protected: it was not erased" in err


def test_an_erasure_is_told_even_where_what_follows_fails(flash: Flash, firmware_dir: Path) -> None:
    elf = compile_firmware("hello", "nrf52840dk", firmware_dir)
    bad = ("--sim-fault", "protected", "--sim-fault", "flash-bit=20")
    code, _, err = flash(elf, "--erase-protected", "--yes", *bad, board="sim:nrf52840dk")
    assert code == 5
    assert "was erased whole" in err


def test_an_elf_that_the_core_would_not_start_is_flashed_with_a_warning(flash: Flash, tmp_path: Path) -> None:
    path = tmp_path / "blank.elf"
    path.write_bytes(elf(data=b"\xff" * 64))
    code, out, err = flash(path)
    assert code == 0, err
    assert "64 bytes" in out  # the flash was blank, too
    assert "warning: its first stack pointer, 0xffffffff at 0x08000000, is in no RAM of the STM32F446RE" in err


def test_an_unplugged_probe_has_a_remedy_that_fits(flash: Flash, tmp_path: Path) -> None:
    """A flash has no trials that could be kept."""
    path = tmp_path / "some.elf"
    path.write_bytes(elf())
    code, _, err = flash(path, "--sim-fault", "unplug-after=150")
    assert code == 5, err
    assert "rig sim:nucleo-f446re" in err
    assert "plug it in again, and give the same command again: a sweep goes on from its finished trials" in err
