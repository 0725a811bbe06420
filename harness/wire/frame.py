"""Frames: one message on the wire, and finding frames in a stream that also holds text and damage.

A frame before stuffing is, little-endian and packed::

    nonce u32 | sequence u16 | type u8 | payload 0..237 bytes | crc32 u32 of everything before it (zlib's)

It is COBS-stuffed (no zero byte inside) and sent between two zero bytes: the first ends whatever came before, such as
boot text or half a frame. At most 248 bytes before stuffing, 249 after, 251 with the two zeros: a device needs no
larger buffer. The nonce names the session, the sequence number the request that a reply answers.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from cobs import cobs

from harness.wire.fields import MAX_PAYLOAD_BYTES, PayloadError

_HEADER = struct.Struct("<IHB")
_CRC = struct.Struct("<I")

OVERHEAD_BYTES = _HEADER.size + _CRC.size
MAX_FRAME_BYTES = MAX_PAYLOAD_BYTES + OVERHEAD_BYTES
#: One byte of stuffing: COBS adds one per started 254.
MAX_STUFFED_BYTES = MAX_FRAME_BYTES + 1


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that arrived whole. ``type`` is the message's number; the payload is not yet read."""

    nonce: int
    sequence: int
    type: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Noise:
    """Bytes between zero bytes that are no frame: boot text, damage, another baud rate. ``why`` is for people."""

    data: bytes
    why: str

    @property
    def is_text(self) -> bool:
        """Printable ASCII with line ends: what a device says to a terminal."""
        return bool(self.data) and all(32 <= byte < 127 or byte in b"\r\n\t" for byte in self.data)

    @property
    def text(self) -> str:
        return self.data.decode("ascii", "replace").strip("\r\n")


def encode_frame(frame: Frame) -> bytes:
    """The bytes to send, with a zero byte before and behind."""
    if len(frame.payload) > MAX_PAYLOAD_BYTES:
        raise PayloadError(f"a payload of {len(frame.payload)} bytes; a frame takes {MAX_PAYLOAD_BYTES}")
    body = _HEADER.pack(frame.nonce, frame.sequence, frame.type) + frame.payload
    stuffed: bytes = cobs.encode(body + _CRC.pack(zlib.crc32(body)))
    return b"\0" + stuffed + b"\0"


def decode_frame(stuffed: bytes) -> Frame | Noise:
    """What stands between two zero bytes."""
    if len(stuffed) > MAX_STUFFED_BYTES:
        return Noise(stuffed, "longer than a frame")
    try:
        raw: bytes = cobs.decode(stuffed)
    except cobs.DecodeError:
        return Noise(stuffed, "not COBS")
    if len(raw) < OVERHEAD_BYTES:
        return Noise(stuffed, "shorter than a frame")
    body, crc = raw[: -_CRC.size], raw[-_CRC.size :]
    if _CRC.pack(zlib.crc32(body)) != crc:
        return Noise(stuffed, "wrong CRC")
    nonce, sequence, number = _HEADER.unpack_from(body)
    return Frame(nonce, sequence, number, body[_HEADER.size :])


class FrameReader:
    """Finds frames in a byte stream. Holds at most one frame's worth of bytes, whatever arrives."""

    def __init__(self) -> None:
        self._pending = bytearray()

    @property
    def pending(self) -> bytes:
        """Bytes since the last zero byte: the start of a frame, or text that no zero byte has ended yet."""
        return bytes(self._pending)

    def feed(self, data: bytes) -> Iterator[Frame | Noise]:
        *closed, rest = data.split(b"\0")
        for piece in closed:
            self._pending += piece
            if self._pending:
                stuffed = bytes(self._pending)
                self._pending.clear()
                yield decode_frame(stuffed)
        self._pending += rest
        while len(self._pending) > MAX_STUFFED_BYTES:
            flushed = bytes(self._pending[: MAX_STUFFED_BYTES + 1])
            del self._pending[: MAX_STUFFED_BYTES + 1]
            yield Noise(flushed, "longer than a frame")

    def flush(self) -> Noise | None:
        """Hand out what is pending as noise: for text that nothing follows."""
        if not self._pending:
            return None
        noise = Noise(bytes(self._pending), "unfinished")
        self._pending.clear()
        return noise
