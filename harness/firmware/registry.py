"""Which TFLM libraries the user has: a list of folders in the user's data folder, or HARNESS_TFLM instead of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.errors import ConfigError
from harness.firmware.library import TflmLibrary, inspect_tree

#: Folders, joined as PATH is, that replace the list.
VARIABLE = "HARNESS_TFLM"


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One registered folder and what was declared of it."""

    folder: str
    commit: str = ""
    kernels: str = ""
    strip_error_strings: bool = False


class Registry:
    """The list, and the libraries behind it. ``path`` is a JSON file, made when first written."""

    def __init__(self, path: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        self._path = path if path is not None else _default_path()
        self._environment = os.environ if environment is None else environment

    @property
    def path(self) -> Path:
        return self._path

    @property
    def overridden(self) -> bool:
        return bool(self._environment.get(VARIABLE))

    def entries(self) -> list[Entry]:
        """Registered folders; those that HARNESS_TFLM names, with what was declared of them before."""
        kept = self._read()
        named = self._environment.get(VARIABLE)
        if not named:
            return kept
        known = {entry.folder: entry for entry in kept}
        folders = [str(Path(part).resolve()) for part in named.split(os.pathsep) if part]
        return [known.get(folder, Entry(folder)) for folder in folders]

    def add(self, folder: Path, *, commit: str = "", kernels: str = "", strip: bool = False) -> list[TflmLibrary]:
        """Register ``folder``; what it holds is read first, so that nothing unusable gets onto the list."""
        resolved = folder.resolve()
        libraries = inspect_tree(resolved, commit=commit, kernels=kernels, strip_error_strings=strip)
        entry = Entry(str(resolved), commit, kernels, strip)
        self._write([kept for kept in self._read() if kept.folder != entry.folder] + [entry])
        return libraries

    def remove(self, folder: Path) -> bool:
        """Take ``folder`` off the list; False when it was not on it."""
        kept = self._read()
        left = [entry for entry in kept if entry.folder != str(folder.resolve())]
        if len(left) != len(kept):
            self._write(left)
        return len(left) != len(kept)

    def libraries(self) -> list[TflmLibrary]:
        """Every library, read anew: the files count, not what was noted of them."""
        found: list[TflmLibrary] = []
        for entry in self.entries():
            found += inspect_tree(
                Path(entry.folder),
                commit=entry.commit,
                kernels=entry.kernels,
                strip_error_strings=entry.strip_error_strings,
            )
        return found

    def _read(self) -> list[Entry]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[Entry])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as exc:
            raise ConfigError(
                f"{self._path}: {exc}", remedy="delete it, then register the libraries again: harness tflm add"
            ) from exc

    def _write(self, entries: list[Entry]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(entries), indent=2))
        part.replace(self._path)


def _default_path() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("tflm-harness", appauthor=False)) / "tflm.json"
