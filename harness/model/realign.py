"""Write a model anew, with its constant data on 16 bytes and inside the flatbuffer, and with metadata where wanted. It
computes the same."""

from __future__ import annotations

import struct
from typing import Any

import flatbuffers

from harness.errors import UnfitModelError
from harness.model.flatbuffer import Field, FlatBuffer, Values, table_plan
from harness.model.graph import Model
from harness.model.identity import IDENTIFIER
from harness.model.reader import parse_model
from harness.model.rules.file import BUFFER_ALIGNMENT
from harness.model.schema import UNIONS


def realign(model: Model) -> bytes:
    """The model with every constant on a multiple of 16 bytes.

    Data that lies behind the flatbuffer (the form of models over 2 GB) is taken in; an archive behind it is left out.
    Raises ``UnfitModelError`` where the file holds what this version's schema does not know: it would be lost.
    """
    values = _values(model)
    aligned = _written(values, model.data)
    _prove(model, parse_model(aligned, lenient=True))
    return aligned


def with_metadata(model: Model, name: str, payload: bytes) -> bytes:
    """The model, realigned, with a metadata entry ``name``; it takes the place of one of that name."""
    values = _values(model)
    fields = table_plan("Model").field_names
    buffers, metadata = fields.index("buffers"), fields.index("metadata")
    values[buffers] = [*(values[buffers] or ()), _filled("Buffer", {"data": (len(model.data), len(payload))})]
    others = [
        entry for entry in values[metadata] or () if entry[table_plan("Metadata").field_names.index("name")] != name
    ]
    values[metadata] = [*others, _filled("Metadata", {"name": name, "buffer": len(values[buffers]) - 1})]
    data = _written(values, model.data + payload)
    copy = parse_model(data, lenient=True)
    entry = next(entry for entry in copy.metadata if entry.name == name)
    assert _same(copy.subgraphs, model.subgraphs) and bytes(copy.buffer_data(entry.buffer)) == payload
    return data


def _filled(table: str, fields: dict[str, Any]) -> Values:
    plan = table_plan(table)
    return [fields.get(entry.name, plan.defaults[entry.index]) for entry in plan.fields]


def _values(model: Model) -> Values:
    """The model's tables, with external data as if it stood in vectors."""
    source = FlatBuffer(model.data)
    values = source.root("Model")
    if source.unknown:
        raise UnfitModelError(
            f"the file holds what the known schema does not: {', '.join(sorted(source.unknown))}",
            code="realign.unknown_fields",
            remedy="convert the model again; converters align the buffers themselves",
        )
    _take_in(values, model.data)
    held = sum(buffer.external[1] if buffer.external else buffer.size_bytes for buffer in model.buffers)
    if held > 2 * len(model.data):
        raise UnfitModelError(
            f"the buffers overlap: they hold {held:,} bytes in a file of {len(model.data):,}",
            code="realign.overlap",
            remedy="the file is damaged or its writer is faulty: convert the model again",
        )
    return values


def _written(values: Values, data: bytes) -> bytes:
    builder = flatbuffers.Builder(len(data) + 1024)
    builder.Finish(_Writer(builder, data).table("Model", values), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def _take_in(values: Values, data: bytes) -> None:
    """Point the spans of external data at their place in the file, as if they were vectors."""
    model, table = table_plan("Model").field_names, table_plan("Buffer").field_names
    for buffer in values[model.index("buffers")] or ():
        _inline(buffer, table.index("data"), table.index("offset"), table.index("size"), data)
    table = table_plan("Operator").field_names
    options, offset = table.index("custom_options"), table.index("large_custom_options_offset")
    for subgraph in values[model.index("subgraphs")] or ():
        for operator in subgraph[table_plan("SubGraph").field_names.index("operators")] or ():
            _inline(operator, options, offset, table.index("large_custom_options_size"), data)


def _inline(values: Values, span: int, offset: int, size: int, data: bytes) -> None:
    start, count = values[offset], values[size]
    if start <= 1:
        return
    if start + count > len(data):
        raise UnfitModelError(
            f"external data reaches to byte {start + count:,}, but the file has {len(data):,} bytes",
            code="realign.external",
            remedy="convert without external buffers (inline weights)",
        )
    values[span], values[offset], values[size] = (start, count), 0, 0


class _Writer:
    def __init__(self, builder: Any, data: bytes) -> None:
        self._builder = builder
        self._data = data

    def table(self, name: str, values: Values) -> int:
        plan = table_plan(name)
        children: dict[int, int] = {}
        for entry in plan.fields:
            value = values[entry.index]
            if value is not None and entry.kind != "scalar":
                child = self._child(name, entry, value)
                if child is not None:
                    children[entry.index] = child
        self._builder.StartObject(plan.slots)
        for entry in plan.fields:
            value = values[entry.index]
            if entry.kind == "scalar" and value != plan.defaults[entry.index]:
                self._scalar(entry, value)
            elif entry.kind == "union" and value[0]:
                self._builder.PrependUint8Slot(entry.slot, value[0], 0)
                if entry.index in children:
                    self._builder.PrependUOffsetTRelativeSlot(entry.slot + 1, children[entry.index], 0)
            elif entry.index in children:
                self._builder.PrependUOffsetTRelativeSlot(entry.slot, children[entry.index], 0)
        return int(self._builder.EndObject())

    def _child(self, name: str, entry: Field, value: Any) -> int | None:
        builder = self._builder
        match entry.kind:
            case "string":
                return int(builder.CreateString(value))
            case "table":
                return self.table(entry.member, value)
            case "tables":
                offsets = [self.table(entry.member, one) for one in value]
                builder.StartVector(4, len(offsets), 4)
                for offset in reversed(offsets):
                    builder.PrependUOffsetTRelative(offset)
                return int(builder.EndVector())
            case "union":
                return self._union(entry, *value)
            case "span":
                data = self._data[value[0] : value[0] + value[1]]
                return self._bytes(data, 1, BUFFER_ALIGNMENT if name == "Buffer" and data else 4, len(data))
            case _:
                width = struct.calcsize("<" + entry.code)
                return self._bytes(struct.pack(f"<{len(value)}{entry.code}", *value), width, width, len(value))

    def _union(self, entry: Field, kind: int, value: Values | None) -> int | None:
        """The member's table; None for a union that names a kind and holds none."""
        members = UNIONS[entry.member]
        if kind > len(members):
            raise UnfitModelError(
                f"the file holds {entry.member} number {kind}, which the known schema does not have",
                code="realign.unknown_fields",
                remedy="convert the model again; converters align the buffers themselves",
            )
        return None if value is None else self.table(members[kind - 1], value)

    def _bytes(self, data: bytes, width: int, alignment: int, count: int) -> int:
        builder = self._builder
        builder.StartVector(width, count, alignment)
        builder.head -= len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        return int(builder.EndVector())

    def _scalar(self, entry: Field, value: Any) -> None:
        prepend = {
            "?": self._builder.PrependBoolSlot,
            "b": self._builder.PrependInt8Slot,
            "B": self._builder.PrependUint8Slot,
            "i": self._builder.PrependInt32Slot,
            "I": self._builder.PrependUint32Slot,
            "q": self._builder.PrependInt64Slot,
            "Q": self._builder.PrependUint64Slot,
            "f": self._builder.PrependFloat32Slot,
        }[entry.code]
        # the default was left out before: the slot is written whatever the value
        prepend(entry.slot, value, None)


def _same(one: object, other: object) -> bool:
    """Equal, where a scale that is no number equals itself."""
    return one == other or repr(one) == repr(other)


def _prove(model: Model, copy: Model) -> None:
    """The copy says what the model says, byte for byte of constant data. Our own bug where it does not."""
    assert _same(copy.subgraphs, model.subgraphs) or any(op.has_external_options for _, op in model.operators())
    assert (copy.operator_codes, copy.metadata, copy.signatures) == (
        model.operator_codes,
        model.metadata,
        model.signatures,
    )
    assert len(copy.buffers) == len(model.buffers)
    for old, new in zip(model.buffers, copy.buffers, strict=True):
        start, size = old.external or (old.offset, old.size_bytes)
        assert copy.buffer_data(new.index) == model.data[start : start + size]
        assert not new.size_bytes or new.offset % BUFFER_ALIGNMENT == 0
