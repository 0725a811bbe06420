"""From a model, a board and an arena capacity to a checked ELF."""

from __future__ import annotations

import concurrent.futures
import hashlib
import logging
import os
import re
import shlex
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.board.record import Evidence, HardwareBoard
from harness.deadline import Deadline
from harness.errors import BuildError, DoesNotFitError, UsageError
from harness.firmware.config import FirmwareConfig, Interpreter
from harness.firmware.elf import ElfFacts, check_elf, read_elf
from harness.firmware.image import FirmwareImage, OwnerSizes
from harness.firmware.layout import MemoryLayout, check_flash, fit_table, plan_layout
from harness.firmware.library import LibraryMismatchError, TflmLibrary, mismatch
from harness.firmware.op_resolver import check_methods, resolver_methods
from harness.firmware.operator_kernels import operator_kernels
from harness.firmware.ownership import parse_map
from harness.firmware.render import profile_events, render_board, render_build_info, render_models, resource_variables
from harness.firmware.toolchain import Toolchain, compile_flags, find_toolchain, machine_flags
from harness.model.graph import Model, joint_sha256
from harness.units import format_bytes, quoted

logger = logging.getLogger(__name__)

#: Sources whose objects depend on HARNESS_* macros of the model.
_TUNED = frozenset({"session.cc", "profiler.cc"})
_BUILD_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class _Unit:
    """One source to compile: its text is written, its object is found by its key."""

    source: Path
    argv: tuple[str, ...]
    object_path: Path


def build_firmware(
    model: Model,
    board: HardwareBoard,
    library: TflmLibrary,
    config: FirmwareConfig,
    out_dir: Path,
    *,
    others: Sequence[Model] = (),
    cache_dir: Path | None = None,
    toolchain: Toolchain | None = None,
    deadline: Deadline | None = None,
) -> FirmwareImage:
    """Render, compile, link and check.

    ``out_dir`` receives ``src/``, ``firmware.elf`` and ``firmware.map``. Objects are cached by content in ``cache_dir``
    (default: the user's cache folder). ``others`` are models that share the arena with ``model``, set up and run after
    it, in this order; inputs and outputs are numbered through all of them. Raises UnfitModelError, DoesNotFitError,
    BuildError, MissingDependencyError.
    """
    models = (model, *others)
    if others and config.interpreter is Interpreter.PRESERVE_ALL:
        raise UsageError(
            "several models cannot share an arena with preserve_all: TFLM's linear planner gives the second the first "
            "one's offsets",
            remedy="take --interpreter plain",
        )
    out_dir = out_dir.resolve()  # the compiler runs in src/
    reason = mismatch(library, board)
    if reason:
        raise LibraryMismatchError(f"{library.archive}: {reason}", remedy="harness tflm list shows the others")
    methods = resolver_methods(*models)
    check_methods(methods, library.resolver_header)
    check_flash(board, sum(one.size_bytes for one in models) + sum(len(data) for data in config.inputs))
    layout = plan_layout(board, config)
    tools = toolchain or find_toolchain()
    until = deadline or Deadline.after(_BUILD_TIMEOUT_S)
    texts = render_board(board, layout, config.transport, caches=config.caches)
    texts |= render_models(models, config, methods)
    identity = _build_identity(texts, models, board, library, config, tools)
    texts["build_info.cc"] = render_build_info(
        {
            "build_id": identity,
            "model_sha256": bytes.fromhex(joint_sha256(models)),
            "board_name": board.base_name,  # a twin runs the very image of its board
            "tflm_commit": library.commit,
            "compiler": _short_compiler(tools.version),
            "optimisation": config.optimise,
            "arena_region": layout.arena_place,
            "kernels": library.kernels,
            "strip_error_strings": library.strip_error_strings,
            "watchdog_s": config.watchdog_s,
        }
    )
    sources = out_dir / "src"
    _write_sources(sources, texts, _model_files(models) | _input_files(config))
    units = _units(sources, texts, models, board, library, config, tools, (cache_dir or default_cache_dir()).resolve())
    _compile(units, tools, until, sources)
    elf_path = out_dir / "firmware.elf"
    flags = (*machine_flags(board, library), config.optimise)
    # In a folder of its own: another process may be making the same firmware. By plain names: of a path, ld replaces %
    # in -Map, and the driver splits -Wl at commas.
    with tempfile.TemporaryDirectory(prefix=".link-", dir=out_dir) as own:
        linked, map_file = Path(own) / elf_path.name, Path(own) / "firmware.map"
        objects, script = [unit.object_path for unit in units], Path("..") / sources.name / "link.ld"
        argv = tools.link_argv(objects, script, library.archive, Path(linked.name), Path(map_file.name), flags)
        logger.info("link: %s", shlex.join(argv))
        _link(tools, argv, until, Path(own), board, layout, config)
        facts = read_elf(linked)
        owners = parse_map(map_file.read_text(encoding="utf-8", errors="replace"))
        map_file.replace(out_dir / map_file.name)
        linked.replace(elf_path)
    check_elf(facts, board)
    return _image(facts, elf_path, owners, models, board, library, config, layout, tools, identity)


def default_cache_dir() -> Path:
    """Where objects are kept between builds."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("tflm-harness", appauthor=False)) / "objects"


def _build_identity(
    texts: Mapping[str, str],
    models: Sequence[Model],
    board: HardwareBoard,
    library: TflmLibrary,
    config: FirmwareConfig,
    tools: Toolchain,
) -> bytes:
    """16 bytes that are the same for the same program: everything that goes into it."""
    digest = hashlib.sha256()
    for name in sorted(texts):
        digest.update(f"{name}\0{len(texts[name])}\0{texts[name]}".encode())
    parts = [joint_sha256(models), board.base_name, library.sha256, library.commit, tools.version, config.optimise]
    parts += [config.interpreter.value, str(config.watchdog_s), *machine_flags(board, library)]
    parts += [hashlib.sha256(data).hexdigest() for data in config.inputs]
    digest.update("\0".join(parts).encode())
    return digest.digest()[:16]


def _short_compiler(version: str) -> str:
    match = re.search(r"\d+\.\d+\.\d+", version)
    return f"GCC {match.group(0)}" if match else version[:48]


def _model_files(models: Sequence[Model]) -> dict[str, bytes]:
    return {f"model_{number}.bin" if number else "model.bin": model.data for number, model in enumerate(models)}


def _input_files(config: FirmwareConfig) -> dict[str, bytes]:
    return {f"input_{index}.bin": data for index, data in enumerate(config.inputs) if data}


def _write_sources(folder: Path, texts: Mapping[str, str], blobs: Mapping[str, bytes]) -> None:
    """Whole, and only what changed: the compiler of another process may be reading them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in {**{name: text.encode() for name, text in texts.items()}, **blobs}.items():
        path = folder / name
        if path.is_file() and path.read_bytes() == data:
            continue
        with tempfile.NamedTemporaryFile(prefix=f".{name}-", dir=folder, delete=False) as part:
            part.write(data)
        Path(part.name).chmod(0o644)
        Path(part.name).replace(path)


def _units(
    sources: Path,
    texts: Mapping[str, str],
    models: Sequence[Model],
    board: HardwareBoard,
    library: TflmLibrary,
    config: FirmwareConfig,
    tools: Toolchain,
    cache_dir: Path,
) -> list[_Unit]:
    machine = machine_flags(board, library)
    flags = compile_flags(machine, config.optimise, library.defines)
    tuned = (
        f"-DHARNESS_INTERPRETER={config.interpreter.number}",
        f"-DHARNESS_MODELS={len(models)}",
        f"-DHARNESS_PROFILE_EVENTS={profile_events(*models)}",
        f"-DHARNESS_RESOURCE_VARIABLES={resource_variables(*models)}",
    )
    base = hashlib.sha256()
    base.update(f"{tools.program}\0{tools.version}\0{library.sha256}\0{library.root}".encode())
    for name in sorted(texts):
        if name.endswith((".h", ".inc")):
            base.update(f"\0{name}\0{texts[name]}".encode())
    units = []
    for name in sorted(texts):
        if not name.endswith((".cc", ".S")):
            continue
        own = (*flags, *tuned) if name in _TUNED else machine if name.endswith(".S") else flags
        key = base.copy()
        key.update(f"\0{name}\0{texts[name]}\0{own}".encode())
        if name == "model.S":
            for model in models:
                key.update(model.sha256.encode())
            for data in config.inputs:
                key.update(data)
        path = cache_dir / f"{key.hexdigest()[:40]}.o"
        # by its name in src/, where the compiler runs: it writes the path of a source into its assembler text
        argv = tools.compile_argv(Path(name), path, own, (Path(),), library.include_dirs)
        units.append(_Unit(sources / name, tuple(argv), path))
    return units


def _compile(units: list[_Unit], tools: Toolchain, deadline: Deadline, cwd: Path) -> None:
    missing = [unit for unit in units if not unit.object_path.is_file()]
    logger.info("compile: %d of %d objects", len(missing), len(units))
    if not missing:
        return
    missing[0].object_path.parent.mkdir(parents=True, exist_ok=True)
    # The slow ones (TFLM's headers) first, so that they do not end up alone at the end.
    missing.sort(key=lambda unit: unit.source.name not in {"session.cc", "op_resolver.cc", "sizes.cc"})
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        try:
            for future in [pool.submit(_compile_one, unit, tools, deadline, cwd) for unit in missing]:
                future.result()
        except BaseException:  # an error, or Ctrl-C: what has not been begun is not begun any more
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _compile_one(unit: _Unit, tools: Toolchain, deadline: Deadline, cwd: Path) -> None:
    """Into a file of its own first: another process may be making the same object."""
    part = unit.object_path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part.o")
    argv = [str(part) if argument == str(unit.object_path) else argument for argument in unit.argv]
    logger.debug("compile: %s", shlex.join(argv))
    try:
        tools.run(argv, deadline, cwd=cwd)
        part.replace(unit.object_path)
    finally:
        part.unlink(missing_ok=True)


def _link(
    tools: Toolchain,
    argv: list[str],
    deadline: Deadline,
    cwd: Path,
    board: HardwareBoard,
    layout: MemoryLayout,
    config: FirmwareConfig,
) -> None:
    try:
        tools.run(argv, deadline, cwd=cwd)
    except BuildError as exc:
        overflow = re.search(r"region [`'](\w+)' overflowed by (\d+) bytes", exc.message)
        if overflow is not None:
            raise _overflow(board, layout, config, overflow.group(1), int(overflow.group(2))) from exc
        if "overlap" in exc.message and "stack" in exc.message:
            raise _overflow(board, layout, config, layout.arena_region, 0) from exc
        raise


def _overflow(
    board: HardwareBoard, layout: MemoryLayout, config: FirmwareConfig, region: str, bytes_over: int
) -> DoesNotFitError:
    if region == "flash":
        return DoesNotFitError(
            f"the program is {format_bytes(bytes_over)} bytes too large for the {format_bytes(board.flash.size_bytes)} "
            f"bytes of flash of {board.name}",
            remedy="take a smaller model, or a board with more flash",
            code="fit.flash",
        )
    largest = max(0, (config.capacity_bytes - bytes_over) // 16 * 16)
    return DoesNotFitError(
        f"the firmware does not fit: {region} is {format_bytes(bytes_over)} bytes too small\n"
        + fit_table(layout, config.capacity_bytes, 0, predicted=True),
        remedy=f"the largest arena that fits is about {format_bytes(largest)} bytes"
        if bytes_over
        else "take a smaller arena or stack",
        code="fit.arena",
    )


def _image(
    facts: ElfFacts,
    elf_path: Path,
    owners: Mapping[str, OwnerSizes],
    models: Sequence[Model],
    board: HardwareBoard,
    library: TflmLibrary,
    config: FirmwareConfig,
    layout: MemoryLayout,
    tools: Toolchain,
    identity: bytes,
) -> FirmwareImage:
    arena = facts.section(".arena")
    assert arena is not None  # check_elf has looked
    sizes = {section.name: section.size_bytes for section in facts.sections}
    data_bytes = arena.address - layout.arena.address if layout.holds_data else 0
    data: dict[str, Any] = {
        "elf_path": elf_path,
        "build_id": identity.hex(),
        "board": board.name,
        "model_path": " + ".join(model.path for model in models),
        "model_sha256": joint_sha256(models),
        "tflm_commit": library.commit,
        "tflm_library": str(library.archive),
        "kernels": library.kernels,
        "interpreter": config.interpreter.value,
        "capacity_bytes": config.capacity_bytes,
        "static_arena": config.static_arena,
        "arena_region": layout.arena_place,
        "arena_address": arena.address + 32,
        "stack_bytes": layout.stack_bytes,
        "compiler": tools.version,
        "optimise": config.optimise,
        "segments": facts.segments,
        "sections": sizes,
        "symbols": facts.symbols,
        "functions": {name: facts.symbols[name] & ~1 for name in facts.functions},
        "owners": owners,
        "operator_kernels": operator_kernels(models, library.kernels, facts.functions),
        "largest_arena_bytes": layout.largest_arena_bytes(data_bytes),
        "notes": _notes(board, library, layout),
    }
    return FirmwareImage(**data)


def _notes(board: HardwareBoard, library: TflmLibrary, layout: MemoryLayout) -> tuple[str, ...]:
    """What a person should know of this image."""
    notes = []
    if "+" in layout.arena_place:
        notes.append(f"the arena's place is {layout.arena_place}: several memories, which may differ in speed")
    if not library.commit:
        notes.append("the TFLM commit of the library is not known: declare it with harness tflm add --commit")
    if board.evidence is Evidence.NONE:
        notes.append(f"nothing has been proven on {quoted(board.name)} yet: its file says evidence: none")
    elif board.evidence is Evidence.TWIN:
        notes.append(f"{quoted(board.name)} has been proven on its twin only, not on silicon")
    return tuple(notes)


def clear_cache(cache_dir: Path | None = None) -> None:
    """Forget all cached objects."""
    shutil.rmtree(cache_dir or default_cache_dir(), ignore_errors=True)
