"""Writes the example models anew: ``python examples/regenerate.py``. A test holds them to the builder's bytes."""

from __future__ import annotations

from pathlib import Path

from harness.model.builder import EXAMPLES

#: file → name in the builder's catalogue
FILES = {
    "hello.tflite": "hello_int8",
    "kws.tflite": "ds_cnn_kws",
    "residual.tflite": "residual_int8",
    "svdf.tflite": "svdf_int8",
}


def main() -> None:
    for file, name in FILES.items():
        (Path(__file__).parent / file).write_bytes(EXAMPLES[name]())


if __name__ == "__main__":
    main()
