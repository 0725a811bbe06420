"""The lab file ``lab.yaml``: the boards on the desk, one entry per rig. Strict records.

```yaml
rigs:
  - name: left
    board: nucleo-f746zg
    probe: 066AFF495087534867123456    # unique id of the probe, or remote:host:port (pyOCD's probe server)
    port: usb:066AFF495087534867123456 # by USB serial number; or a path, or a pyserial URL (rfc2217://, socket://)
  - name: this-computer
    board: host
```
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

import msgspec

from harness.board.catalogue import UnknownBoardError, load_board
from harness.board.strict_yaml import load_yaml
from harness.board.twin_faults import parse_fault
from harness.errors import ConfigError, UsageError
from harness.units import quoted

FILE_NAME = "lab.yaml"
_REMEDY = "docs/rigs.md describes every key"
#: A parameter of a URL that holds a password, and its value.
_SECRET_PARAMETER = re.compile(r"((?:^|[?&;])[^=&#;]*(?:pass|pwd|secret|token)[^=&#;]*=)([^&#;]*)", re.IGNORECASE)
_LAST_PORT = 65535
_REMOTE = re.compile(r"^remote:(?P<host>[^:\s]+):(?P<port>\d{1,5})\Z")


class LabFileError(ConfigError):
    """A lab file does not say what it must."""

    default_code = "lab.invalid"


class RigEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One board on somebody's desk. ``probe`` is a unique id or ``remote:host:port``; "": the only one that fits.
    ``port`` is ``usb:SERIAL``, a device path or a pyserial URL; "": the one that belongs to the probe. ``pace`` and
    ``faults`` are for twins: take a real board's time, and misbehave as told. ``lab`` is the file that it was read
    from, no key of it; "": made on demand."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z", max_length=80)]
    board: Annotated[str, msgspec.Meta(pattern=r"^(sim:)?[a-z0-9][a-z0-9_.-]*\Z")]
    probe: str = ""
    port: str = ""
    pace: bool = False
    faults: tuple[str, ...] = ()
    notes: str = ""
    lab: str = ""

    @property
    def is_remote(self) -> bool:
        return self.probe.startswith("remote:")


class Lab(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rigs of one lab, in the order of the file."""

    rigs: Annotated[tuple[RigEntry, ...], msgspec.Meta(min_length=1)]

    def rig(self, name: str) -> RigEntry:
        """Raises LabFileError with the names that there are."""
        for entry in self.rigs:
            if entry.name == name:
                return entry
        raise LabFileError(
            f"the lab has no rig {quoted(name)}; it has {', '.join(entry.name for entry in self.rigs)}",
            remedy="harness lab discover proposes entries for what is plugged in",
            code="lab.no_rig",
        )


def read_lab(path: Path, boards_dirs: Iterable[Path] | None = None) -> Lab:
    """Raises LabFileError with file and key. ``boards_dirs``: the user's own boards; with None, which boards there are
    is not known, and an entry may name any."""
    values = load_yaml(path, LabFileError)
    if values is None:
        raise LabFileError(f"{path}: the file is empty", remedy="harness lab discover proposes entries; docs/rigs.md")
    try:
        lab = msgspec.convert(values, Lab, strict=True)
    except msgspec.ValidationError as exc:
        raise LabFileError(f"{path}: {exc}", remedy=_REMEDY) from exc
    unknown = () if boards_dirs is None else _unknown_boards(lab, tuple(boards_dirs))
    for where, problem in (*_problems(lab), *_twin_problems(lab), *unknown):
        raise LabFileError(f"{path}: {problem} - `{where}`", remedy=_REMEDY)
    here = str(path.resolve())
    return Lab(rigs=tuple(msgspec.structs.replace(entry, lab=here) for entry in lab.rigs))


def find_lab(path: Path | None = None, boards_dirs: Iterable[Path] | None = None) -> Lab | None:
    """The named file; else ``lab.yaml`` in the working directory, else in the user's config folder, or None."""
    if path is not None:
        return read_lab(path, boards_dirs)
    for candidate in lab_files():
        if candidate.exists() or candidate.is_symlink():  # a folder, or a link to nothing, is told as what it is
            return read_lab(candidate, boards_dirs)
    return None


def lab_files() -> tuple[Path, ...]:
    """Where a lab file is looked for, first one first."""
    from platformdirs import user_config_path

    return (Path(FILE_NAME), user_config_path("tflm-harness") / FILE_NAME)


def lab_yaml(entries: tuple[RigEntry, ...]) -> str:
    """The entries as a lab file; what is left at its default is left out."""
    import yaml

    rows: list[dict[str, Any]] = []
    for entry in entries:
        values = msgspec.to_builtins(entry)
        rows.append({key: value for key, value in values.items() if key != "lab" and value not in ("", False, [], ())})
    text: str = yaml.safe_dump({"rigs": rows}, sort_keys=False, allow_unicode=True)
    return text


def redacted_url(url: str) -> str:
    """The URL without its passwords: for records, logs and reports."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        netloc = parts.netloc if parts.password is None else f"{parts.username or ''}:***@{host}"
    except ValueError:
        return _SECRET_PARAMETER.sub(r"\1***", re.sub(r"//[^/@]*@", "//***@", url))
    query = _SECRET_PARAMETER.sub(r"\1***", parts.query)
    if (netloc, query) == (parts.netloc, parts.query):
        return url  # as it was written
    return urlunsplit(parts._replace(netloc=netloc, query=query))


def secrets_of(url: str) -> tuple[str, ...]:
    """Every way in which a password of the URL may be written, longest first."""
    try:
        parts = urlsplit(url)
        found = {parts.password or "", *_SECRET_PARAMETER.split(parts.query)[2::3]}
    except ValueError:
        return ()
    every = {text for secret in found for text in (secret, unquote(secret), unquote_plus(secret)) if text}
    return tuple(sorted(every, key=len, reverse=True))


def _problems(lab: Lab) -> list[tuple[str, str]]:
    """(place, text) of what the types cannot say."""
    found = []
    for name, count in Counter(entry.name for entry in lab.rigs).items():
        if count > 1:
            found.append(("$.rigs", f"{count} rigs are called {quoted(name)}"))
    # a real probe serves one rig; twins and the host are made on demand
    probes = Counter(entry.probe for entry in lab.rigs if entry.probe)
    for probe, count in probes.items():
        if count > 1:
            found.append(("$.rigs", f"{count} rigs share the probe {quoted(probe)}"))
    for at, entry in enumerate(lab.rigs):
        where = f"$.rigs[{at}]"
        if entry.lab:
            found.append((where, "Object contains unknown field `lab`"))
        if entry.is_remote and not _is_address(entry.probe):
            found.append((f"{where}.probe", f"{quoted(entry.probe)} is not remote:host:port"))
        if "://" in entry.port and not _is_url(entry.port):
            found.append((f"{where}.port", f"{quoted(redacted_url(entry.port))} has a port that is none (1 to 65535)"))
        if entry.is_remote and "://" not in entry.port:
            found.append(
                (f"{where}.port", "a remote rig needs a serial URL: rfc2217://host:port or socket://host:port")
            )
        if entry.board == "host" and (entry.probe or entry.port):
            found.append((where, "the host board has no probe and no port"))
    return found


def _is_address(probe: str) -> bool:
    found = _REMOTE.match(probe)
    return found is not None and 0 < int(found["port"]) <= _LAST_PORT


def _is_url(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:  # no number, or too large
        return not url.startswith(("socket://", "rfc2217://"))


def _twin_problems(lab: Lab) -> list[tuple[str, str]]:
    """As `_problems`, of ``pace`` and ``faults``."""
    found = []
    for at, entry in enumerate(lab.rigs):
        where = f"$.rigs[{at}]"
        if (entry.pace or entry.faults) and not entry.board.startswith("sim:"):
            found.append((where, "pace and faults are for twins (sim:…)"))
        elif (entry.pace or entry.faults) and entry.is_remote:
            found.append((where, "pace and faults of a remote twin are given where it runs, to harness sim serve"))
        if entry.board.startswith("sim:") and not entry.is_remote:
            own = "a twin on this computer has its own; remote:host:port is for one of harness sim serve"
            found += [(f"{where}.{key}", own) for key, value in (("probe", entry.probe), ("port", entry.port)) if value]
        refused = ((f"{where}.faults[{number}]", _refusal(fault)) for number, fault in enumerate(entry.faults))
        found += [(place, why) for place, why in refused if why]
    return found


def _unknown_boards(lab: Lab, boards_dirs: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    for at, entry in enumerate(lab.rigs):
        why = _no_board(entry.board, boards_dirs)
        if why:
            yield f"$.rigs[{at}].board", why


def _no_board(name: str, boards_dirs: tuple[Path, ...]) -> str:
    """Why there is no such board; "" where there is."""
    try:
        load_board(name, boards_dirs)
    except UnknownBoardError as exc:
        return exc.message
    return ""


def _refusal(fault: str) -> str:
    """Why there is no such fault; "" where there is."""
    try:
        parse_fault(fault)
    except UsageError as exc:
        return f"{exc.message} ({exc.remedy})"
    return ""
