"""What an archive and its headers tell, and which library a board gets."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.board.catalogue import load_hardware_board
from harness.board.record import Fpu
from harness.cli.tflm import tflm
from harness.errors import ConfigError, ExitCode, HarnessError, UsageError
from harness.firmware.archive import ArchiveError, defined_symbols
from harness.firmware.library import LibraryError, LibraryMismatchError, TflmLibrary, choose_library, inspect_tree
from harness.firmware.registry import Registry
from harness.firmware.struct_sizes import compile_struct_sizes
from tests.firmware.fake_tflm import build_fake_tflm
from tests.patience import PATIENCE_S

COMMIT = "90b983c2b3f1480642e040bbd2ddb37b998f3424"


def test_core_fpu_and_kernels_are_read_from_the_archive(fake_root: Path) -> None:
    (m4,) = inspect_tree(build_fake_tflm(fake_root, "cortex-m4+fp", "cmsis_nn"))
    assert (m4.arch, m4.fpu, m4.float_abi, m4.kernels) == ("v7E-M", Fpu.SINGLE, "hard", "cmsis_nn")
    (m7,) = inspect_tree(build_fake_tflm(fake_root, "cortex-m7+fp", "reference"))
    assert (m7.arch, m7.fpu, m7.kernels) == ("v7E-M", Fpu.DOUBLE, "reference")
    (soft,) = inspect_tree(build_fake_tflm(fake_root, "cortex-m4", "reference"))
    assert (soft.fpu, soft.float_abi) == (Fpu.NONE, "soft")
    (m33,) = inspect_tree(build_fake_tflm(fake_root, "cortex-m33", "cmsis_nn"))
    assert (m33.arch, m33.fpu) == ("v8-M.main", Fpu.SINGLE)
    assert m4.short_enums and not m4.compression and m4.commit == "" and m4.declared == ()


def test_the_f746_refuses_the_double_precision_library(fake_root: Path) -> None:
    """TFLM's cortex-m7+fp library faults on the STM32F746 with UNDEFINSTR at its first vcvt.f64.f32."""
    libraries = inspect_tree(build_fake_tflm(fake_root, "cortex-m7+fp"))
    with pytest.raises(LibraryMismatchError) as caught:
        choose_library(libraries, load_hardware_board("nucleo-f746zg"), "cmsis_nn")
    assert "double-precision" in caught.value.message
    assert "STM32F746ZG is single-precision" in caught.value.message
    assert "TARGET_ARCH=cortex-m4+fp OPTIMIZED_KERNEL_DIR=cmsis_nn" in caught.value.remedy
    assert caught.value.exit_code == ExitCode.BUILD


def test_each_board_gets_the_library_that_uses_most_of_its_chip(fake_libraries: list[TflmLibrary]) -> None:
    def chosen(board: str, kernels: str = "cmsis_nn") -> str:
        return choose_library(fake_libraries, load_hardware_board(board), kernels).root.name

    assert chosen("nucleo-f746zg") == "cortex-m4+fp-cmsis_nn"
    assert chosen("nucleo-f767zi") == "cortex-m7+fp-cmsis_nn"
    assert chosen("nucleo-l476rg", "reference") == "cortex-m4+fp-reference"
    assert chosen("nrf5340dk") == "cortex-m33-cmsis_nn"


def test_an_armv8_library_is_refused_on_a_cortex_m4(fake_root: Path) -> None:
    libraries = inspect_tree(build_fake_tflm(fake_root, "cortex-m33"))
    with pytest.raises(LibraryMismatchError, match=r"v8-M.main code does not run on a cortex-m4"):
        choose_library(libraries, load_hardware_board("nrf52840dk"), "cmsis_nn")


def test_wide_enums_are_refused(fake_root: Path) -> None:
    libraries = inspect_tree(build_fake_tflm(fake_root, "cortex-m4+fp", "cmsis_nn", ("-fno-short-enums",)))
    assert not libraries[0].short_enums
    with pytest.raises(LibraryMismatchError, match="enums"):
        choose_library(libraries, load_hardware_board("nrf52840dk"), "cmsis_nn")


def test_a_missing_library_names_the_call_that_makes_it() -> None:
    with pytest.raises(LibraryMismatchError) as caught:
        choose_library([], load_hardware_board("nucleo-f767zi"), "reference")
    assert (caught.value.code, caught.value.exit_code) == ("tflm.missing", 3)
    assert "TARGET_ARCH=cortex-m7+fp microlite" in caught.value.remedy
    assert "OPTIMIZED_KERNEL_DIR" not in caught.value.remedy


def test_members_compiled_differently_are_refused(fake_root: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(build_fake_tflm(fake_root, "cortex-m4+fp"), mixed)
    other = build_fake_tflm(fake_root, "cortex-m4") / "fake_tflm.o"
    renamed = tmp_path / "soft.o"
    shutil.copy(other, renamed)
    archive = mixed / "lib" / "libtensorflow-microlite.a"
    subprocess.run(["arm-none-eabi-ar", "q", str(archive), str(renamed)], check=True, timeout=PATIENCE_S)
    with pytest.raises(LibraryMismatchError, match="different core, float ABI or enum size"):
        inspect_tree(mixed)


@pytest.mark.parametrize("content", [b"", b"!<arch>\n", b"not an archive", b"!<arch>\n" + b"x" * 60])
def test_a_broken_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError):
        defined_symbols(content, tmp_path / "lib.a")


def test_a_folder_without_a_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match="holds no TFLM library"):
        inspect_tree(tmp_path)


def test_a_built_checkout_is_a_tree_too(fake_root: Path, tmp_path: Path) -> None:
    tree = build_fake_tflm(fake_root, "cortex-m4+fp")
    shutil.copytree(tree / "include", tmp_path, dirs_exist_ok=True)
    lib = tmp_path / "gen" / "cortex_m_generic_cortex-m4+fp_default_cmsis_nn_gcc" / "lib"
    lib.mkdir(parents=True)
    shutil.copy(tree / "lib" / "libtensorflow-microlite.a", lib)
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs" / "heads" / "main").write_text(COMMIT + "\n")
    (library,) = inspect_tree(tmp_path)
    assert library.commit == COMMIT
    assert library.kernels == "cmsis_nn"


def test_declared_kernels_must_agree_with_the_symbols(fake_root: Path) -> None:
    with pytest.raises(LibraryError, match="its symbols say cmsis_nn"):
        inspect_tree(build_fake_tflm(fake_root, "cortex-m4+fp", "cmsis_nn"), kernels="reference")


def test_the_registry_keeps_what_was_declared(fake_root: Path, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "list.json", environment={})
    tree = build_fake_tflm(fake_root, "cortex-m4+fp")
    assert registry.libraries() == []
    registry.add(tree, commit=COMMIT, strip=True)
    (library,) = Registry(tmp_path / "list.json", environment={}).libraries()
    assert library.commit == COMMIT
    assert library.strip_error_strings
    assert library.declared == ("commit", "strip_error_strings")
    assert "TF_LITE_STRIP_ERROR_STRINGS" in library.defines
    registry.add(tree, commit=COMMIT)  # again: replaced, not doubled
    (library,) = registry.libraries()
    assert library.declared == ("commit",)
    assert registry.remove(tree)
    assert not registry.remove(tree)


def test_harness_tflm_replaces_the_list(fake_root: Path, tmp_path: Path) -> None:
    m4, m33 = build_fake_tflm(fake_root, "cortex-m4+fp"), build_fake_tflm(fake_root, "cortex-m33")
    Registry(tmp_path / "list.json", environment={}).add(m4)
    registry = Registry(tmp_path / "list.json", environment={"HARNESS_TFLM": os.pathsep.join([str(m33), str(m4)])})
    assert registry.overridden
    assert [library.root.name for library in registry.libraries()] == ["cortex-m33-cmsis_nn", "cortex-m4+fp-cmsis_nn"]


def test_nothing_unusable_gets_onto_the_list(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "list.json", environment={})
    with pytest.raises(HarnessError):
        registry.add(tmp_path)
    assert not (tmp_path / "list.json").exists()


def test_a_damaged_list_is_told(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[{")
    with pytest.raises(ConfigError, match=r"list\.json"):
        Registry(tmp_path / "list.json", environment={}).libraries()


def test_the_command_lists_in_json(fake_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_TFLM", str(build_fake_tflm(fake_root, "cortex-m4+fp")))
    result = CliRunner().invoke(tflm, ["list", "--sizes", "--json"])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.output)["libraries"]
    assert row["kernels"] == "cmsis_nn"
    assert row["sizes"]["void*"] == [4, 4]


def test_a_commit_must_look_like_one(fake_root: Path) -> None:
    result = CliRunner().invoke(tflm, ["add", str(build_fake_tflm(fake_root)), "--commit", "main"])
    assert isinstance(result.exception, UsageError)


@pytest.mark.tflm
def test_struct_sizes_of_real_tflm_are_those_measured(real_libraries: list[TflmLibrary], shared_dir: Path) -> None:
    measured = json.loads((shared_dir / "golden" / "sizeof.json").read_text())
    sizes = compile_struct_sizes(real_libraries[0])
    assert len(sizes) == 28
    for name, (size, _) in sizes.items():
        if name in measured:
            known = measured[name]["arm"]
            assert size == (
                known["size"] if isinstance(known, dict) else known[0] if isinstance(known, list) else known
            )
