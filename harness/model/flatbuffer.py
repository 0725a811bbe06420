"""A flatbuffer read with every access proven in bounds first.

The decoder walks tables by the field lists of ``schema.py``. Root, tables, vtables, vectors, strings and unions are
checked for bounds and alignment, as flatbuffers' own C++ Verifier does, while they are read, so a hostile file ends in
a ``ModelFileError`` that names the byte. The schema has no recursive table, so depth is bounded by it; breadth is
bounded by a budget, because a small file can name one table a million times.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from harness.errors import ModelFileError
from harness.model.schema import TABLES, UNIONS

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_VTABLE_HEAD = struct.Struct("<HH")

#: Tables that one file may hold. A model of 10,000 convolutions has about 100,000.
MAX_TABLES = 150_000
#: Times that a table may be named again, beside twice for each table that the file has. Writers share few (an empty
#: options table, an empty buffer); a small file that names one a million times would otherwise cost a million.
MAX_REPEATED_TABLES = 5_000
#: Bytes of strings and number vectors that one file may make us decode (constant data is not decoded).
MAX_DECODED_BYTES = 8 * 1024 * 1024
#: Decoded bytes allowed per byte of file, beside a fixed allowance: strings and vectors may be shared, not without end.
DECODED_BYTES_PER_FILE_BYTE = 4
DECODED_BYTES_ALLOWANCE = 64 * 1024

Values = list[Any]
#: (start, size) of a byte vector inside the file: constant data is never copied.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Field:
    """One field: ``kind`` is scalar, numbers, span, string, table, tables or union; ``slot`` its vtable slot."""

    index: int
    slot: int
    name: str
    kind: str
    unpacker: struct.Struct | None = None
    code: str = ""
    member: str = ""


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How to read one table: its fields in slot order, and the values of an empty one."""

    name: str
    fields: tuple[Field, ...]
    defaults: tuple[Any, ...]
    slots: int  # known slots, deprecated ones and both of a union included

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.fields)


_plans: dict[str, TablePlan] = {}


def table_plan(name: str) -> TablePlan:
    """The compiled field list of a table of the schema."""
    plan = _plans.get(name)
    if plan is None:
        plan = _plans[name] = _compile(name, TABLES.get(name, ""))
    return plan


def _compile(table: str, text: str) -> TablePlan:
    fields: list[Field] = []
    defaults: list[Any] = []
    slot = 0
    for word in text.split():
        name, kind = word.split(":")
        kind, _, default = kind.partition("=")
        if name.startswith("-"):
            slot += 1
            continue
        if kind.startswith("<"):
            fields.append(Field(len(fields), slot, name, "union", member=kind[1:-1]))
            defaults.append((0, None))
            slot += 2
            continue
        fields.append(_field(len(fields), slot, name, kind))
        defaults.append(_default(kind, default))
        slot += 1
    return TablePlan(table, tuple(fields), tuple(defaults), slot)


def _field(index: int, slot: int, name: str, kind: str) -> Field:
    if kind == "s":
        return Field(index, slot, name, "string")
    if kind == "[B":
        return Field(index, slot, name, "span")
    if kind.startswith("[{"):
        return Field(index, slot, name, "tables", member=kind[2:-1])
    if kind.startswith("{"):
        return Field(index, slot, name, "table", member=kind[1:-1])
    if kind.startswith("["):
        return Field(index, slot, name, "numbers", struct.Struct("<" + kind[1]), kind[1])
    return Field(index, slot, name, "scalar", struct.Struct("<" + kind), kind)


def _default(kind: str, text: str) -> Any:
    if len(kind) > 1 or kind == "s":
        return None
    if kind == "?":
        return text == "1"
    return float(text or 0) if kind in "fd" else int(text or 0)


class FlatBuffer:
    """One flatbuffer. ``table(name, position)`` gives the values of a table in the order of its plan: numbers,
    strings (None where absent), tuples of numbers, spans, and nested values for tables and unions. ``unknown`` names
    what the file holds and the schema does not know: tables with further fields, unions of a further type."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._size = len(data)
        self.unknown: set[str] = set()
        self._tables_left = MAX_TABLES
        self._repeats_left = MAX_REPEATED_TABLES
        self._visited: set[int] = set()
        self._bytes_left = min(MAX_DECODED_BYTES, DECODED_BYTES_PER_FILE_BYTE * len(data) + DECODED_BYTES_ALLOWANCE)
        self._present: dict[tuple[str, int], list[tuple[int, Field]]] = {}

    def root(self, name: str) -> Values:
        if self._size < 8:
            raise self._truncated("the file header", 0, 8)
        position = _U32.unpack_from(self._data, 0)[0]
        return self.table(name, self._check_offset_target(position, 0, "the root table"))

    def table(self, name: str, position: int) -> Values:
        self._count(position)
        data, size = self._data, self._size
        vtable = position - _I32.unpack_from(data, position)[0]
        present = self._present.get((name, vtable))
        if present is None:
            present = self._present[name, vtable] = self._read_vtable(name, position, vtable)
        values = list(table_plan(name).defaults)
        for offset, entry in present:
            at = position + offset
            kind = entry.kind
            if kind == "scalar":
                unpacker = entry.unpacker
                assert unpacker is not None
                width = unpacker.size
                if at + width > size:
                    raise self._truncated(f"field {name}.{entry.name}", at, at + width)
                if at % width:
                    raise self._misaligned(f"field {name}.{entry.name}", at, width)
                values[entry.index] = unpacker.unpack_from(data, at)[0]
            elif kind == "union":
                values[entry.index] = self._union(name, entry, position, vtable, at)
            else:
                what = f"{name}.{entry.name}"
                values[entry.index] = self._referenced(entry, self._follow(at, what), what)
        return values

    def _count(self, position: int) -> None:
        """Keep the work within what an honest file asks for."""
        self._tables_left -= 1
        if position in self._visited:
            self._repeats_left -= 1
        else:
            self._visited.add(position)
            self._repeats_left += 2
        if self._tables_left < 0 or self._repeats_left < 0:
            what = f"more than {MAX_TABLES:,} tables" if self._tables_left < 0 else "the same tables again and again"
            raise ModelFileError(
                f"the file makes the reader visit {what}",
                code="model.too_complex",
                remedy="no model for a microcontroller is that large; the file is damaged or made to do harm",
            )

    def _read_vtable(self, name: str, position: int, vtable: int) -> list[tuple[int, Field]]:
        data, size = self._data, self._size
        if vtable < 0 or vtable + 4 > size:
            raise self._damaged(f"the vtable of {name} lies outside the file, at byte {vtable}", position)
        if vtable % 2:
            raise self._misaligned(f"the vtable of {name}", vtable, 2)
        vtable_size, _ = _VTABLE_HEAD.unpack_from(data, vtable)
        if vtable_size < 4 or vtable_size % 2:
            raise self._damaged(f"the vtable of {name} says that it is {vtable_size} bytes long", vtable)
        if vtable + vtable_size > size:
            raise self._truncated(f"the vtable of {name}", vtable, vtable + vtable_size)
        offsets = struct.unpack_from(f"<{vtable_size // 2 - 2}H", data, vtable + 4)
        plan = table_plan(name)
        if any(offsets[plan.slots :]):
            self.unknown.add(name)
        return [
            (offsets[entry.slot], entry) for entry in plan.fields if entry.slot < len(offsets) and offsets[entry.slot]
        ]

    def _follow(self, at: int, what: str) -> int:
        """Where the offset at ``at`` leads: 4-aligned, with room for one word."""
        if at + 4 > self._size:
            raise self._truncated(f"field {what}", at, at + 4)
        if at % 4:
            raise self._misaligned(f"field {what}", at, 4)
        return self._check_offset_target(at + _U32.unpack_from(self._data, at)[0], at, what)

    def _check_offset_target(self, target: int, at: int, what: str) -> int:
        if target == at:
            raise self._damaged(f"the offset of {what} is 0", at)
        if target + 4 > self._size:
            raise self._truncated(what, target, target + 4)
        if target % 4:
            raise self._misaligned(what, target, 4)
        return target

    def _referenced(self, entry: Field, target: int, what: str) -> Any:
        kind = entry.kind
        if kind == "table":
            return self.table(entry.member, target)
        count = _U32.unpack_from(self._data, target)[0]
        start = target + 4
        if kind == "tables":
            end = start + 4 * count
            if end > self._size:
                raise self._truncated(f"vector {what} of {count:,} tables", start, end)
            member, follow, table = entry.member, self._follow, self.table
            return [table(member, follow(at, what)) for at in range(start, end, 4)]
        if kind == "span":
            if start + count > self._size:
                raise self._truncated(f"vector {what} of {count:,} bytes", start, start + count)
            return start, count
        if kind == "string":
            return self._string(start, count, what)
        return self._numbers(entry, start, count, what)

    def _string(self, start: int, count: int, what: str) -> str:
        end = start + count
        if end + 1 > self._size:
            raise self._truncated(f"string {what} of {count:,} bytes", start, end + 1)
        if self._data[end]:
            raise self._damaged(f"string {what} is not closed by a zero byte", end)
        self._spend(count)
        return self._data[start:end].decode("utf-8", "backslashreplace")

    def _numbers(self, entry: Field, start: int, count: int, what: str) -> tuple[Any, ...]:
        assert entry.unpacker is not None
        end = start + count * entry.unpacker.size
        if end > self._size:
            raise self._truncated(f"vector {what} of {count:,} numbers", start, end)
        self._spend(end - start)
        return struct.unpack_from(f"<{count}{entry.code}", self._data, start)

    def _union(self, name: str, entry: Field, position: int, vtable: int, type_at: int) -> tuple[int, Any]:
        """(type, values) of a union; (type, None) where the schema does not know the type."""
        if type_at + 1 > self._size:
            raise self._truncated(f"field {name}.{entry.name}_type", type_at, type_at + 1)
        union_type = self._data[type_at]
        if union_type == 0:
            return 0, None
        value_slot = vtable + 4 + 2 * (entry.slot + 1)
        has_slot = value_slot + 2 <= vtable + _U16.unpack_from(self._data, vtable)[0]
        offset = _U16.unpack_from(self._data, value_slot)[0] if has_slot else 0
        if not offset:
            return union_type, None
        what = f"{name}.{entry.name}"
        target = self._follow(position + offset, what)
        members = UNIONS[entry.member]
        if union_type > len(members):
            self.unknown.add(f"{what} of type {union_type}")
            return union_type, None
        return union_type, self.table(members[union_type - 1], target)

    def _spend(self, count: int) -> None:
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise ModelFileError(
                f"the names and number lists of the file decode to more than {MAX_DECODED_BYTES:,} bytes, "
                f"or to {DECODED_BYTES_PER_FILE_BYTE} times its size",
                code="model.too_complex",
                remedy="no model for a microcontroller is that large; the file is damaged or made to do harm",
            )

    def _truncated(self, what: str, start: int, end: int) -> ModelFileError:
        return ModelFileError(
            f"{what} reaches from byte {start:,} to byte {end:,}, but the file ends at byte {self._size:,}",
            code="model.truncated",
            remedy="the file is cut off or damaged: copy or convert it again",
        )

    def _misaligned(self, what: str, at: int, alignment: int) -> ModelFileError:
        return self._damaged(f"{what} is not on a multiple of {alignment} bytes", at)

    def _damaged(self, what: str, at: int) -> ModelFileError:
        return ModelFileError(
            f"{what} (at byte {at:,})",
            code="model.damaged",
            remedy="the flatbuffer is damaged: copy or convert it again",
        )
