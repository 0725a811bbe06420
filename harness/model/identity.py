"""What a file is when it is no ``.tflite`` model, said in its own words."""

from __future__ import annotations

from harness.errors import ModelFileError
from harness.units import quoted, safe_text

#: file_identifier of schema.fbs, at bytes 4 to 8.
IDENTIFIER = b"TFL3"

_CONVERT = "name a .tflite file that a TensorFlow Lite converter wrote"

#: (first bytes, what they are, code, remedy)
_SIGNATURES: tuple[tuple[bytes, str, str, str], ...] = (
    (
        b"version https://git-lfs",
        "a Git LFS pointer, not the model itself",
        "model.lfs_pointer",
        "run `git lfs pull` in the repository that the file comes from",
    ),
    (b"PK\x03\x04", "a zip archive", "model.archive", "unpack it and name the .tflite inside"),
    (b"\x1f\x8b", "gzip-compressed data", "model.archive", "unpack it and name the .tflite inside"),
    (b"BZh", "bzip2-compressed data", "model.archive", "unpack it and name the .tflite inside"),
    (b"\xfd7zXZ\x00", "xz-compressed data", "model.archive", "unpack it and name the .tflite inside"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "model.archive", "unpack it and name the .tflite inside"),
    (
        b"\x89HDF\r\n\x1a\n",
        "an HDF5 file (a Keras model)",
        "model.other_format",
        "convert it with tf.lite.TFLiteConverter",
    ),
    (b"\x7fELF", "an ELF file (compiled code)", "model.other_format", _CONVERT),
    (b"\x93NUMPY", "a NumPy array", "model.other_format", _CONVERT),
)
_C_ARRAY_WORDS = (b"unsigned char", b"uint8_t", b"alignas", b"#include")


def check_identity(data: bytes) -> None:
    """Raise ``ModelFileError`` unless the bytes carry the file identifier where it belongs."""
    if data[4:8] == IDENTIFIER and not data.startswith(b"PK\x03\x04"):
        return
    if not data:
        raise ModelFileError("the file is empty (0 bytes)", code="model.empty", remedy="copy or convert it again")
    for magic, what, code, remedy in _SIGNATURES:
        if data.startswith(magic):
            raise ModelFileError(f"the file is {what}{_lfs_size(data, code)}", code=code, remedy=remedy)
    if len(data) < 8:
        raise ModelFileError(
            f"the file is only {len(data)} bytes long; the header of a .tflite model alone has 8",
            code="model.truncated",
            remedy="the file is cut off: copy or convert it again",
        )
    _check_displaced(data)
    _check_text(data)
    raise ModelFileError(
        f"bytes 4 to 8 of the file are {_identifier(data)}, not the file identifier TFL3 of a .tflite model",
        code="model.identifier",
        remedy=_CONVERT + "; the file may be damaged or of another kind",
    )


def _lfs_size(data: bytes, code: str) -> str:
    if code != "model.lfs_pointer":
        return ""
    for line in data[:400].splitlines():
        if line.startswith(b"size ") and line[5:].strip().isdigit():
            return f" (the model has {int(line[5:][:20]):,} bytes)"
    return ""


def _check_displaced(data: bytes) -> None:
    place = data.find(IDENTIFIER, 0, 256)
    if place < 0:
        return
    shift = place - 4
    if shift == 4 and int.from_bytes(data[:4], "little") == len(data) - 4:
        raise ModelFileError(
            "the flatbuffer is size-prefixed: its length stands before it, and TFLM does not expect that",
            code="model.size_prefixed",
            remedy="remove the first 4 bytes of the file",
        )
    remedy = (
        f"remove the first {shift} bytes of the file" if shift > 0 else f"{-shift} bytes are missing: copy it again"
    )
    raise ModelFileError(
        f"the file identifier TFL3 stands at byte {place}, not at byte 4: the model is shifted by {shift} bytes",
        code="model.shifted",
        remedy=remedy,
    )


def _check_text(data: bytes) -> None:
    head = data[:512]
    printable = sum(1 for byte in head if 32 <= byte < 127 or byte in b"\t\r\n")
    if printable < len(head):
        return
    if head.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        what, remedy = "a web page", "the download failed or wants a login: download the raw file"
    elif any(word in head for word in _C_ARRAY_WORDS):
        what, remedy = "C source text", "name the .tflite file that the array was made from"
    else:
        first = safe_text(head.decode("ascii").split("\n")[0], 60)
        what, remedy = f"text that begins {quoted(first)}", _CONVERT
    raise ModelFileError(f"the file is {what}, not a .tflite model", code="model.text", remedy=remedy)


def _identifier(data: bytes) -> str:
    word = data[4:8]
    if all(32 <= byte < 127 for byte in word):
        return quoted(word.decode("ascii"))
    return word.hex(" ")
