"""Field types of messages: how each is laid out on the wire, and what it is called in C.

Everything is little-endian and packed. A record's fields follow one another without padding; an array is a count byte
and that many elements. A field with a default may be missing at the end of a payload (it came with a later minor
version), and bytes behind the last known field are ignored (they belong to a later minor version than ours).
"""

from __future__ import annotations

import struct
from dataclasses import MISSING, dataclass, fields
from enum import IntEnum
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

from harness.errors import LinkError

#: Largest payload of a frame, in bytes. See frame.py for the arithmetic.
MAX_PAYLOAD_BYTES = 237


class PayloadError(LinkError):
    """A frame arrived whole, but its payload is not what its type says."""

    default_code = "link.payload"


class OpenEnum(IntEnum):
    """An enumeration that a later minor version may extend: a value not known here reads as UNKNOWN (255)."""

    @classmethod
    def _missing_(cls, value: object) -> Any:  # noqa: ARG003
        return cls.__members__.get("UNKNOWN")


@dataclass(frozen=True, slots=True)
class Scalar:
    """An integer. ``format`` is struct's letter."""

    format: str
    c_type: str

    @property
    def size_bytes(self) -> int:
        return struct.calcsize("<" + self.format)


@dataclass(frozen=True, slots=True)
class FixedBytes:
    """Exactly ``size_bytes`` bytes."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class Text:
    """ASCII text in ``size_bytes`` bytes, padded with NUL; no terminator when it fills them. Longer text is cut."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class Blob:
    """Up to ``max_bytes`` bytes: a count byte, then the bytes."""

    max_bytes: int


@dataclass(frozen=True, slots=True)
class Array:
    """Up to ``max_count`` scalars or rows (records of fixed size): a count byte, then the elements."""

    element: Scalar | type
    max_count: int


U8 = Scalar("B", "uint8_t")
U16 = Scalar("H", "uint16_t")
U32 = Scalar("I", "uint32_t")
U64 = Scalar("Q", "uint64_t")

FieldType = Scalar | FixedBytes | Text | Blob | Array


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record: ``enum`` is set for a scalar that holds an enumeration's value."""

    name: str
    wire: FieldType
    enum: type[OpenEnum] | None = None
    has_default: bool = False
    default: Any = None


def fields_of(record: type) -> tuple[Field, ...]:
    """The fields of a message or row record, in wire order, read from its annotations."""
    if record not in _FIELDS:
        _FIELDS[record] = _read_fields(record)
    return _FIELDS[record]


_FIELDS: dict[type, tuple[Field, ...]] = {}


def _read_fields(record: type) -> tuple[Field, ...]:
    hints = get_type_hints(record, include_extras=True)
    found = []
    for entry in fields(record):
        hint = hints[entry.name]
        assert get_origin(hint) is Annotated, f"{record.__name__}.{entry.name} has no wire type"
        python_type, wire_type = get_args(hint)[:2]
        enum = python_type if isinstance(python_type, type) and issubclass(python_type, OpenEnum) else None
        has_default = entry.default is not MISSING
        found.append(Field(entry.name, wire_type, enum, has_default, entry.default if has_default else None))
    return tuple(found)


def encode_record(record: Any) -> bytes:
    """The payload of a message record."""
    payload = b"".join(_encode_field(field, getattr(record, field.name)) for field in fields_of(type(record)))
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise PayloadError(f"{type(record).__name__} needs {len(payload)} bytes; a frame takes {MAX_PAYLOAD_BYTES}")
    return payload


def _encode_field(field: Field, value: Any) -> bytes:
    match field.wire:
        case Scalar(format=letter):
            try:
                return struct.pack("<" + letter, value)
            except struct.error as exc:
                raise PayloadError(f"{field.name}: {value} does not fit in {field.wire.c_type}") from exc
        case FixedBytes(size_bytes=size):
            if len(value) != size:
                raise PayloadError(f"{field.name}: {len(value)} bytes where {size} belong")
            return bytes(value)
        case Text(size_bytes=size):
            return str(value).encode("ascii", "replace")[:size].ljust(size, b"\0")
        case Blob(max_bytes=limit):
            if len(value) > limit:
                raise PayloadError(f"{field.name}: {len(value)} bytes where at most {limit} fit")
            return bytes([len(value)]) + bytes(value)
        case Array(element=element, max_count=limit):
            if len(value) > limit:
                raise PayloadError(f"{field.name}: {len(value)} elements where at most {limit} fit")
            if isinstance(element, Scalar):
                return bytes([len(value)]) + struct.pack(f"<{len(value)}{element.format}", *value)
            return bytes([len(value)]) + b"".join(encode_record(row) for row in value)


class _Cursor:
    """Reads a payload from the front."""

    __slots__ = ("_data", "_offset")

    end_text: ClassVar[str] = "the payload ends inside"

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    @property
    def at_end(self) -> bool:
        return self._offset == len(self._data)

    def take(self, size: int, name: str) -> bytes:
        piece = self._data[self._offset : self._offset + size]
        if len(piece) != size:
            raise PayloadError(f"{self.end_text} {name}: {len(piece)} of {size} bytes")
        self._offset += size
        return piece


def decode_record(record: type, payload: bytes) -> Any:
    """The record that ``payload`` holds; PayloadError when it holds none."""
    return _decode(record, _Cursor(payload))


def _decode(record: type, cursor: _Cursor) -> Any:
    values: dict[str, Any] = {}
    for field in fields_of(record):
        if field.has_default and cursor.at_end:
            values[field.name] = field.default
        else:
            values[field.name] = _decode_field(field, cursor)
    return record(**values)


def _decode_field(field: Field, cursor: _Cursor) -> Any:
    match field.wire:
        case Scalar(format=letter):
            (value,) = struct.unpack("<" + letter, cursor.take(field.wire.size_bytes, field.name))
            return field.enum(value) if field.enum else value
        case FixedBytes(size_bytes=size):
            return cursor.take(size, field.name)
        case Text(size_bytes=size):
            return cursor.take(size, field.name).split(b"\0", 1)[0].decode("ascii", "replace")
        case Blob(max_bytes=limit):
            (count,) = cursor.take(1, field.name)
            if count > limit:
                raise PayloadError(f"{field.name}: {count} bytes announced where at most {limit} fit")
            return cursor.take(count, field.name)
        case Array(element=element, max_count=limit):
            (count,) = cursor.take(1, field.name)
            if count > limit:
                raise PayloadError(f"{field.name}: {count} elements announced where at most {limit} fit")
            if isinstance(element, Scalar):
                return struct.unpack(f"<{count}{element.format}", cursor.take(count * element.size_bytes, field.name))
            return tuple(_decode(element, cursor) for _ in range(count))
