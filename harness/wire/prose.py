"""Frames and noise as lines for a person."""

from __future__ import annotations

from typing import Any

from harness.units import safe_text
from harness.wire import messages
from harness.wire.fields import OpenEnum, PayloadError, fields_of
from harness.wire.frame import Frame, Noise

#: Longer data is cut: a line is for reading.
_MOST_BYTES = 32


def tell(piece: Frame | Noise) -> str:
    """``Hello #3 of session 1a2b3c4d: major=1 …``; for noise its text, or its bytes and why it is no frame."""
    if isinstance(piece, Noise):
        return _tell_noise(piece)
    head = f"#{piece.sequence} of session {piece.nonce:08x}"
    try:
        record = messages.from_frame(piece)
    except PayloadError as exc:
        return f"unreadable message {piece.type:#04x} {head}: {exc.message}"
    body = " ".join(f"{field.name}={_tell_value(getattr(record, field.name))}" for field in fields_of(type(record)))
    return f"{type(record).__name__} {head}" + (f": {body}" if body else "")


def _tell_noise(noise: Noise) -> str:
    if noise.is_text:
        return f"text: {safe_text(noise.text, 300)}"
    return f"noise, {len(noise.data)} bytes ({noise.why}): {_hex(noise.data)}"


def _hex(data: bytes) -> str:
    return data[:_MOST_BYTES].hex() + ("…" if len(data) > _MOST_BYTES else "")


def _tell_value(value: Any) -> str:
    match value:
        case OpenEnum():
            return value.name.lower()
        case bytes():
            return _hex(value) or "-"
        case str():
            return f'"{safe_text(value)}"'
        case int() if value in {messages.UNKNOWN_U32, messages.UNKNOWN_U64}:
            return "unknown"
        case tuple():
            return "[" + ", ".join(_tell_value(element) for element in value) + "]"
        case int():
            return str(value)
        case _:
            row = (f"{field.name}={_tell_value(getattr(value, field.name))}" for field in fields_of(type(value)))
            return "(" + " ".join(row) + ")"
