"""``harness build``: an image and a table, or a sentence, a remedy and an exit code."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from harness.board.catalogue import load_hardware_board
from harness.cli.main import main
from harness.firmware.build import build_firmware
from harness.firmware.config import FirmwareConfig
from harness.firmware.library import inspect_tree
from harness.model.reader import read_model
from tests.firmware.fake_tflm import build_fake_tflm

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hello.tflite"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("arm-none-eabi-g++") is None:
        pytest.skip("arm-none-eabi-g++ is not installed: harness doctor names the packages")
    return build_fake_tflm(tmp_path_factory.mktemp("tflm"), "cortex-m4+fp")


@pytest.fixture
def build(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Runs the command in an empty folder, with the fake TFLM as the registered one: exit code, stdout, stderr."""
    monkeypatch.setenv("HARNESS_TFLM", str(tree))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tree / "cache"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, model: Path = EXAMPLE) -> tuple[int, str, str]:
        code = main(["build", str(model), *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def test_an_image_with_its_table(build, tmp_path: Path) -> None:
    code, out, _ = build("--board", "nucleo-f746zg", "--arena-capacity", "32KiB")
    assert code == 0
    assert (tmp_path / "build" / "nucleo-f746zg" / "hello" / "firmware.elf").is_file()
    assert "arena 32,768 B (32.0 KiB) in sram1" in out
    for owner in ("harness", "model", "kernels", "stack", "together"):
        assert owner in out
    assert "proven on its twin only" in out


@pytest.mark.parametrize("folder", ["100%done", "a,b c", "a\nb", "-a'b\"c", "$a", "@a\\b", "*(a)"])
def test_a_folder_may_be_called_anything(build, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ld puts the output's name for % into that of the map: "cannot open map file", exit 4."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # everything is compiled there, too
    code, out, err = build("--board", "nucleo-f446re", "--arena-capacity", "4096", "--json", f"--out={folder}")
    assert code == 0, err
    assert json.loads(out)["owners"]["kernels"]["text"] > 0
    assert sorted(path.name for path in (tmp_path / folder).iterdir()) == ["firmware.elf", "firmware.map", "src"]


def test_two_that_build_the_same_at_once_do_not_meet(tree: Path, tmp_path: Path) -> None:
    """One read the ELF that the other was linking: "a bug of harness: ELFError: Magic number does not match"."""
    models, board = (read_model(EXAMPLE),) * 6, load_hardware_board("nucleo-f446re")
    (library,) = inspect_tree(tree)
    config = FirmwareConfig(capacity_bytes=4096)
    with ThreadPoolExecutor(max_workers=len(models)) as pool:
        images = list(
            pool.map(
                lambda model: build_firmware(model, board, library, config, tmp_path / "out", cache_dir=tree), models
            )
        )
    assert len({image.segments for image in images}) == 1
    assert len({str(image.owners) for image in images}) == 1
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["firmware.elf", "firmware.map", "src"]
    assert not [path for path in (tmp_path / "out" / "src").iterdir() if path.name.startswith(".")]


def test_the_json_document(build) -> None:
    code, out, err = build("--board", "nrf52840dk", "--arena-capacity", "4096", "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["schema"] == "harness.build"
    assert document["schema_version"] == 1
    assert document["arena"]["capacity_bytes"] == 4096
    assert document["arena"]["address"] % 16 == 0
    assert document["tflm"]["kernels"] == "cmsis_nn"
    assert len(document["build_id"]) == 32
    assert document["flash_bytes"] > document["owners"]["model"]["rodata"] > 0


def test_without_a_capacity_the_arena_is_what_fits(build) -> None:
    document = json.loads(build("--board", "nrf52dk", "--json")[1])
    assert 40_000 < document["arena"]["capacity_bytes"] <= document["arena"]["largest_bytes"]


def test_a_twin_runs_the_very_image_of_its_board(build) -> None:
    ids = {
        json.loads(build("--board", name, "--arena-capacity", "4096", "--json")[1])["build_id"]
        for name in ("nucleo-f446re", "sim:nucleo-f446re")
    }
    assert len(ids) == 1


def test_what_does_not_fit_ends_with_1_and_the_size_that_would(build) -> None:
    code, out, err = build("--board", "nucleo-f746zg", "--arena-capacity", "400KiB")
    assert (code, out) == (1, "")
    assert "does not fit on nucleo-f746zg" in err
    assert "the largest arena that fits is 316,096 bytes" in err


def test_a_missing_library_ends_with_3_and_the_call_that_makes_it(build) -> None:
    code, _, err = build("--board", "nucleo-f746zg", "--kernels", "reference")
    assert code == 3
    assert "TARGET_ARCH=cortex-m4+fp microlite" in err


def test_a_missing_compiler_ends_with_3(build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from harness.firmware.toolchain import find_toolchain

    find_toolchain.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = build("--board", "nucleo-f746zg")
    find_toolchain.cache_clear()
    assert code == 3
    assert "gcc-arm-none-eabi" in err


def test_an_unknown_board_ends_with_5(build) -> None:
    assert build("--board", "nucleo-f999")[0] == 5


def test_the_host_has_no_firmware(build) -> None:
    code, _, err = build("--board", "host")
    assert code == 2
    assert "has no firmware" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--arena-capacity", "96k"), "is not a size"),
        (("--arena-capacity", "8KiB", "--static-arena", "8KiB"), "exclude each other"),
        (("--arena-region", "sdram"), "no memory of"),
        (("--stack", "1000"), "a stack of"),
    ],
)
def test_bad_usage_ends_with_2(build, arguments: tuple[str, ...], said: str) -> None:
    code, _, err = build("--board", "nucleo-f746zg", *arguments)
    assert code == 2
    assert said in err


def test_an_input_can_be_baked_in_and_must_have_the_models_size(build, tmp_path: Path) -> None:
    np.save(tmp_path / "right.npy", np.zeros((1, 1), np.int8))
    np.save(tmp_path / "wrong.npy", np.zeros(77, np.int8))
    common = ("--board", "nucleo-f446re", "--arena-capacity", "4096", "--json")
    document = json.loads(build(*common)[1])
    assert json.loads(build(*common, "--input", "right.npy")[1])["build_id"] != document["build_id"]
    code, out, _ = build(*common, "--input", "wrong.npy")
    assert code == 4
    assert json.loads(out)["error"]["code"] == "build.input"


def test_a_models_name_is_no_path_and_no_option(build, tmp_path: Path) -> None:
    hostile = tmp_path / 'x"; $(touch pwned) \n.tflite'
    shutil.copy(EXAMPLE, hostile)
    code, out, _ = build("--board", "nucleo-f446re", "--arena-capacity", "4096", "--json", model=hostile)
    assert code == 0
    assert not (tmp_path / "pwned").exists()
    assert Path(json.loads(out)["elf"]).parent.name.replace("_", "").isalnum()


def test_a_model_that_tflm_cannot_run_is_refused_before_it_is_built(build, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(EXAMPLE.read_bytes()[:200])
    assert build("--board", "nucleo-f446re", model=broken)[0] in {1, 2}
