"""A TFLM library: a prebuilt ``libtensorflow-microlite.a`` with its headers, and what both tell.

The harness never contains or compiles TFLM's sources: it links what TFLM's own build made for a core and kernel set.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.board.record import Fpu, HardwareBoard
from harness.errors import ExitCode, HarnessError, UsageError
from harness.firmware.archive import BuildAttributes, defined_symbols, members, object_attributes

ARCHIVE_NAME = "libtensorflow-microlite.a"

#: Tag_CPU_arch → the instruction set (ABI-addenda32, 3.3.5.2).
CPU_ARCHS = {10: "v7-M", 11: "v6-M", 12: "v6S-M", 13: "v7E-M", 16: "v8-M.base", 17: "v8-M.main", 21: "v8.1-M.main"}
#: What a core can execute.
CORE_ARCHS = {
    "cortex-m0": {11, 12},
    "cortex-m0plus": {11, 12},
    "cortex-m3": {10, 11, 12},
    "cortex-m4": {10, 11, 12, 13},
    "cortex-m7": {10, 11, 12, 13},
    "cortex-m33": {10, 11, 12, 13, 16, 17},
}
#: Sub-folders of include/ (or of TFLM's downloads) that its headers need.
_THIRD_PARTY = ("flatbuffers/include", "gemmlowp", "ruy", "kissfft")
_DOWNLOADS = "tensorflow/lite/micro/tools/make/downloads"
_INTERPRETER_HEADER = "tensorflow/lite/micro/micro_interpreter.h"


class LibraryError(UsageError):
    """The folder holds no usable TFLM library."""

    default_code = "tflm.library"


class LibraryMismatchError(HarnessError):
    """The library would not run on this board, or not with these headers."""

    exit_code = ExitCode.BUILD
    default_code = "tflm.mismatch"


class LibraryMissingError(LibraryMismatchError):
    """No library for this board is registered, fit or unfit: the environment is incomplete."""

    exit_code = ExitCode.ENVIRONMENT
    default_code = "tflm.missing"


@dataclass(frozen=True, slots=True)
class TflmLibrary:
    """What is known of one library, and how: ``declared`` names the facts that somebody said rather than were read.

    ``arch`` is the instruction set, ``fpu`` what the code needs, ``float_abi`` hard|softfp|soft, ``kernels`` reference
    or cmsis_nn. ``commit`` is empty where neither the tree nor anybody told.
    """

    root: Path
    archive: Path
    include_dirs: tuple[Path, ...]
    sha256: str
    arch: str
    cpu_arch: int
    fpu: Fpu
    float_abi: str
    short_enums: bool
    kernels: str
    compression: bool
    strip_error_strings: bool
    commit: str
    declared: tuple[str, ...] = ()

    @property
    def resolver_header(self) -> str:
        """Text of micro_mutable_op_resolver.h."""
        for folder in self.include_dirs:
            path = folder / "tensorflow/lite/micro/micro_mutable_op_resolver.h"
            if path.is_file():
                return path.read_text(encoding="utf-8", errors="replace")
        return ""

    @property
    def defines(self) -> tuple[str, ...]:
        """Macros that its headers were compiled with: another set would give other structs."""
        names = ["TF_LITE_STATIC_MEMORY", "TF_LITE_MCU_DEBUG_LOG", "TF_LITE_DISABLE_X86_NEON"]
        if self.kernels == "cmsis_nn":
            names.append("CMSIS_NN")
        if self.compression:
            names.append("USE_TFLM_COMPRESSION")
        if self.strip_error_strings:
            names.append("TF_LITE_STRIP_ERROR_STRINGS")
        return tuple(names)

    @property
    def title(self) -> str:
        return f"{self.arch}{'' if self.fpu is Fpu.NONE else f', {self.fpu.value} FPU'}, {self.kernels}"


def find_trees(folder: Path) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """(archive, include folders) of every library in ``folder``: include/ and lib/, or a built TFLM checkout."""
    if (folder / "include" / _INTERPRETER_HEADER).is_file():
        include = folder / "include"
        thirds = [include / "third_party" / name for name in _THIRD_PARTY]
        for archive in sorted((folder / "lib").glob(f"**/{ARCHIVE_NAME}")):
            yield archive, (include, *(path for path in thirds if path.is_dir()))
    elif (folder / _INTERPRETER_HEADER).is_file():
        thirds = [folder / _DOWNLOADS / name for name in _THIRD_PARTY]
        for archive in sorted(folder.glob(f"gen/*/lib/{ARCHIVE_NAME}")):
            yield archive, (folder, *(path for path in thirds if path.is_dir()))
    elif folder.is_dir():
        for child in sorted(folder.iterdir()):
            if (child / "include" / _INTERPRETER_HEADER).is_file():
                yield from find_trees(child)


def inspect_tree(
    folder: Path, *, commit: str = "", kernels: str = "", strip_error_strings: bool = False
) -> list[TflmLibrary]:
    """Every library in ``folder``, as read, with what was declared. Raises LibraryError when there is none."""
    libraries = [
        _inspect(folder, archive, include_dirs, commit, kernels, strip_error_strings)
        for archive, include_dirs in find_trees(folder)
    ]
    if not libraries:
        raise LibraryError(
            f"{folder} holds no TFLM library",
            remedy=f"name a folder with include/ and lib/{ARCHIVE_NAME}, or a TFLM checkout after `make microlite`",
        )
    return libraries


def _inspect(
    folder: Path, archive: Path, include_dirs: tuple[Path, ...], commit: str, kernels: str, strip: bool
) -> TflmLibrary:
    data = archive.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    facts = _archive_facts(archive, data, digest)
    attributes = facts.attributes
    told_commit = _commit_of(archive, folder)
    read_kernels = facts.kernels
    if kernels and kernels != read_kernels:
        raise LibraryError(
            f"{archive}: its symbols say {read_kernels} kernels, not {kernels}", remedy="leave --kernels away"
        )
    declared = [name for name, said in [("commit", commit), ("strip_error_strings", strip)] if said]
    fpu = Fpu.NONE if not attributes.fp_arch else Fpu.DOUBLE if attributes.uses_double else Fpu.SINGLE
    return TflmLibrary(
        root=folder,
        archive=archive,
        include_dirs=include_dirs,
        sha256=digest,
        arch=CPU_ARCHS.get(attributes.cpu_arch, f"Tag_CPU_arch {attributes.cpu_arch}"),
        cpu_arch=attributes.cpu_arch,
        fpu=fpu,
        float_abi=attributes.float_abi,
        short_enums=attributes.enum_size == 1,
        kernels=read_kernels,
        compression=facts.compression,
        strip_error_strings=strip,
        commit=commit or told_commit,
        declared=tuple(declared),
    )


class _ArchiveFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What reading a whole archive tells: kept by its hash, since reading takes half a second."""

    attributes: BuildAttributes
    kernels: str
    compression: bool


def _archive_facts(archive: Path, data: bytes, digest: str) -> _ArchiveFacts:
    kept = _facts_folder() / f"{digest[:40]}.json"
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(kept.read_bytes(), type=_ArchiveFacts)
    symbols = defined_symbols(data, archive)
    facts = _ArchiveFacts(
        attributes=_common_attributes(archive, data),
        kernels="cmsis_nn" if any(name.startswith("arm_convolve") for name in symbols) else "reference",
        compression=any("CompressedTensor" in name for name in symbols),
    )
    with contextlib.suppress(OSError):  # a cache that cannot be written is none
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(msgspec.json.encode(facts))
        part.replace(kept)
    return facts


def _facts_folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("tflm-harness", appauthor=False)) / "archives"


def _common_attributes(archive: Path, data: bytes) -> BuildAttributes:
    """What all members agree on. Members that disagree cannot be linked into one program safely."""
    seen: dict[tuple[int, int, int], str] = {}
    widest = BuildAttributes()
    for name, contents in members(data, archive):
        attributes = object_attributes(contents)
        if attributes is None:
            continue
        if not attributes.enum_size and not attributes.fp_arch and not attributes.vfp_args:
            continue  # hand-written assembly says little
        seen.setdefault((attributes.cpu_arch, attributes.vfp_args, attributes.enum_size), name)
        if widest == BuildAttributes() or (attributes.uses_double and not widest.uses_double):
            widest = attributes
    if not seen:
        raise LibraryError(f"{archive} holds no code for Arm", remedy="name a library built for Cortex-M")
    if len(seen) > 1:
        names = ", ".join(sorted(seen.values()))
        raise LibraryMismatchError(
            f"{archive}: its members were compiled with different core, float ABI or enum size (see {names})",
            remedy="build the library anew, all of it with one set of flags",
        )
    return widest


def _commit_of(archive: Path, folder: Path) -> str:
    """The commit that a checkout is at, or that a text file beside include/ and lib/ tells."""
    head = folder / ".git" / "HEAD"
    if head.is_file():
        text = head.read_text(encoding="utf-8").strip()
        if text.startswith("ref: "):
            ref = folder / ".git" / text[5:]
            text = ref.read_text(encoding="utf-8").strip() if ref.is_file() else ""
        return text if re.fullmatch(r"[0-9a-f]{40}", text) else ""
    for path in sorted(archive.parent.parent.glob("*.txt")):
        match = re.search(r"TFLM commit:\s*([0-9a-f]{40})\b", path.read_text(encoding="utf-8", errors="replace"))
        if match:
            return match.group(1)
    return ""


def mismatch(library: TflmLibrary, board: HardwareBoard) -> str:
    """Why the library's code would not run on the board; empty when it would."""
    if library.cpu_arch not in CORE_ARCHS[board.core]:
        return f"{library.arch} code does not run on a {board.core}"
    if library.fpu is Fpu.DOUBLE and board.fpu is not Fpu.DOUBLE:
        return (
            f"it uses double-precision FPU instructions, and the FPU of the {board.chip} is "
            f"{board.fpu.value}-precision: the first one would fault (UNDEFINSTR)"
        )
    if library.fpu is not Fpu.NONE and board.fpu is Fpu.NONE:
        return f"it uses FPU instructions, and the {board.chip} has no FPU"
    if not library.short_enums:
        return "its enums are as wide as int (-fno-short-enums); the harness is compiled with the ABI's short ones"
    return ""


def choose_library(libraries: list[TflmLibrary], board: HardwareBoard, kernels: str) -> TflmLibrary:
    """The best library for the board: right kernels, runs on the chip, uses most of it.

    Raises LibraryMismatchError, with the variables of TFLM's own build that make the missing one.
    """
    refused = []
    fitting = []
    for library in libraries:
        reason = mismatch(library, board)
        if library.kernels != kernels:
            continue
        if reason:
            refused.append(f"{library.archive}: {reason}")
        else:
            fitting.append(library)
    if fitting:
        return max(fitting, key=lambda library: (library.cpu_arch, list(Fpu).index(library.fpu)))
    error = LibraryMismatchError if refused else LibraryMissingError
    raise error(
        f"no TFLM library for {board.name} ({board.core}, {board.fpu.value} FPU, {kernels} kernels)"
        + "".join(f"\n  refused: {line}" for line in refused),
        remedy=f"build it in a TFLM checkout with `{make_line(board, kernels)}`, then `harness tflm add CHECKOUT`",
    )


def make_line(board: HardwareBoard, kernels: str) -> str:
    """The call of TFLM's own build that makes the library for a board."""
    optimised = "OPTIMIZED_KERNEL_DIR=cmsis_nn " if kernels == "cmsis_nn" else ""
    return (
        "make -f tensorflow/lite/micro/tools/make/Makefile TARGET=cortex_m_generic "
        f"TARGET_ARCH={board.tflm_archs[0]} {optimised}microlite"
    )
