"""The protocol as plain data, for whoever renders it into another language (the firmware's C header)."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.wire import fields as wire_fields
from harness.wire import messages
from harness.wire.fields import Array, Blob, Field, FixedBytes, OpenEnum, Scalar, Text, fields_of


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """One field. ``kind``: scalar | bytes | text | blob | array | rows. ``c_type`` is the element's C type (of a row:
    the row record's name); ``count`` its fixed or largest number of elements, 1 for a scalar."""

    name: str
    kind: str
    c_type: str
    count: int
    enum: str = ""


@dataclass(frozen=True, slots=True)
class RecordDescription:
    """A message (``number`` set) or a row of one. ``max_bytes`` is its largest payload."""

    name: str
    doc: str
    fields: tuple[FieldDescription, ...]
    max_bytes: int
    number: int | None = None


@dataclass(frozen=True, slots=True)
class EnumDescription:
    name: str
    doc: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ProtocolDescription:
    major: int
    minor: int
    max_payload_bytes: int
    boot_line_prefix: str
    enums: tuple[EnumDescription, ...]
    rows: tuple[RecordDescription, ...]
    messages: tuple[RecordDescription, ...]
    constants: dict[str, int] = field(default_factory=dict)


def _size(entry: Field) -> int:
    match entry.wire:
        case Scalar() | FixedBytes() | Text():
            return entry.wire.size_bytes
        case Blob(max_bytes=limit):
            return 1 + limit
        case Array(element=element, max_count=limit):
            return 1 + limit * (element.size_bytes if isinstance(element, Scalar) else record_bytes(element))


def record_bytes(record: type) -> int:
    """The largest size of a record on the wire."""
    return sum(_size(entry) for entry in fields_of(record))


def _describe_field(entry: Field) -> FieldDescription:
    match entry.wire:
        case Scalar(c_type=c_type):
            return FieldDescription(entry.name, "scalar", c_type, 1, entry.enum.__name__ if entry.enum else "")
        case FixedBytes(size_bytes=size):
            return FieldDescription(entry.name, "bytes", "uint8_t", size)
        case Text(size_bytes=size):
            return FieldDescription(entry.name, "text", "char", size)
        case Blob(max_bytes=limit):
            return FieldDescription(entry.name, "blob", "uint8_t", limit)
        case Array(element=element, max_count=limit):
            if isinstance(element, Scalar):
                return FieldDescription(entry.name, "array", element.c_type, limit)
            return FieldDescription(entry.name, "rows", element.__name__, limit)


def _describe_record(record: type, number: int | None = None) -> RecordDescription:
    entries = tuple(_describe_field(entry) for entry in fields_of(record))
    return RecordDescription(record.__name__, (record.__doc__ or "").strip(), entries, record_bytes(record), number)


def describe() -> ProtocolDescription:
    """Everything that a renderer needs: numbers, names, fields and C types, in a fixed order."""
    enums: dict[str, type[OpenEnum]] = {}
    rows: dict[str, type] = {}
    for value in vars(messages).values():
        if isinstance(value, type) and issubclass(value, OpenEnum) and value is not OpenEnum:
            enums[value.__name__] = value
    for record in messages.MESSAGES.values():
        for entry in fields_of(record):
            if isinstance(entry.wire, Array) and not isinstance(entry.wire.element, Scalar):
                rows[entry.wire.element.__name__] = entry.wire.element
    return ProtocolDescription(
        major=messages.PROTOCOL_MAJOR,
        minor=messages.PROTOCOL_MINOR,
        max_payload_bytes=wire_fields.MAX_PAYLOAD_BYTES,
        boot_line_prefix=messages.BOOT_LINE_PREFIX,
        enums=tuple(
            EnumDescription(name, (enum.__doc__ or "").strip(), tuple((m.name, m.value) for m in enum))
            for name, enum in enums.items()
        ),
        rows=tuple(_describe_record(row) for row in rows.values()),
        messages=tuple(_describe_record(record, number) for number, record in sorted(messages.MESSAGES.items())),
        constants={
            "UNKNOWN_U32": messages.UNKNOWN_U32,
            "UNKNOWN_U64": messages.UNKNOWN_U64,
            "ALL_INPUTS": messages.ALL_INPUTS,
            "OWN_OUTPUTS": messages.OWN_OUTPUTS,
        },
    )
