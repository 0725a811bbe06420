"""Where the data that comes with the package lies: in the wheel, or at the top of a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _data(name: str) -> Path:
    packaged = _PACKAGE / "data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def boards_dir() -> Path:
    """The folder of the board files that come with the package."""
    return _data("boards")


def firmware_templates_dir() -> Path:
    """The folder of the firmware templates that come with the package."""
    return _data("firmware_templates")
