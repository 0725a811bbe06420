"""Imports point down: rooms may import only from the rooms named here (docs/architecture.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "harness"

GROUND = {"bounded_file", "errors", "units", "deadline", "paths", "trial", "interrupts"}
ROOMS: dict[str, set[str]] = {
    "bounded_file": set(),
    "errors": set(),
    "deadline": set(),
    "paths": set(),
    "trial": set(),
    "interrupts": set(),
    "units": {"errors"},
    "abi": GROUND,
    "model": GROUND,
    "board": GROUND,
    "wire": GROUND,
    "search": GROUND,
    "plan": GROUND | {"model", "abi"},
    "firmware": GROUND | {"model", "board", "wire", "abi"},
    "probe": GROUND | {"board"},
    "link": GROUND | {"board", "wire"},
    "device": GROUND | {"link", "probe", "wire"},
    "sim": GROUND | {"board", "wire", "probe", "link"},
    "inputs": GROUND | {"model", "wire"},
    "reference": GROUND | {"model"},
    "reconcile": GROUND | {"plan", "device", "search", "abi", "model"},
    "estimates": GROUND,
    "shapes": GROUND | {"model"},
    "whatif": GROUND | {"model", "abi", "plan", "shapes"},
    "record": GROUND | {"plan", "device", "search", "reconcile", "board", "model"},
    "rig": GROUND | {"board", "probe", "link", "sim", "device"},
    "sweep": GROUND
    | {"model", "abi", "board", "wire", "search", "plan", "firmware", "probe", "link", "device", "sim", "reference"}
    | {"reconcile", "record", "rig", "inputs"},
    "report": GROUND | {"record", "reconcile", "plan", "model", "estimates", "whatif"},
}
ROOMS["environment"] = GROUND | {"board", "firmware", "link", "probe", "sim", "rig"}
ROOMS["lab"] = ROOMS["sweep"] | {"sweep", "report", "estimates"}
ROOMS["qualify"] = ROOMS["sweep"] | {"sweep"}
ROOMS["cli"] = ROOMS["lab"] | {"lab", "qualify", "estimates", "shapes", "whatif", "environment"}

OWNERS = {
    "pyocd": {"probe", "sim"},
    "serial": {"link"},
    "jinja2": {"firmware", "report"},
    "unicorn": {"sim"},
    "tflite": {"model"},
    "yaml": {"board", "lab"},
    "sqlalchemy": {"lab"},
    "labgrid": {"lab"},
}


def _room(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "harness":
                names |= {f"harness.{alias.name}" for alias in node.names}
            else:
                names.add(node.module)
    return names


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if _room(p) not in {"__init__", "__main__"})


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_room_imports_only_from_the_rooms_below_it(path: Path) -> None:
    room = _room(path)
    allowed = ROOMS[room] | {room, "__version__"}
    used = {name.split(".")[1] for name in _imports(path) if name.startswith("harness.")}
    assert used <= allowed, f"{room} imports {sorted(used - allowed)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_each_foreign_library_has_one_owner(path: Path) -> None:
    room = _room(path)
    for name in {name.split(".")[0] for name in _imports(path)}:
        if name in OWNERS:
            assert room in OWNERS[name], f"{room} imports {name}, which belongs to {sorted(OWNERS[name])}"
