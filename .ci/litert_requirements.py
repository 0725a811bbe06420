"""Prints the requirements of the installed harness with ai-edge-litert in place of tflite-runtime.

Declared dependencies choose one of the two by platform and Python; this makes the other choice, to test it.
"""

from __future__ import annotations

from importlib import metadata

from packaging.requirements import Requirement

#: Replaced as one: tflite-runtime wants numpy 1, and pandas 3 refuses it.
OTHER = ["ai-edge-litert>=2,<3", "numpy>=2,<3", "pandas>=2.2,<4"]
TIED = {"tflite-runtime", "ai-edge-litert", "numpy", "pandas"}


def main() -> None:
    for text in metadata.requires("tflm-harness") or []:
        requirement = Requirement(text)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": "test"})
        if wanted and requirement.name not in TIED:
            print(f"{requirement.name}{requirement.specifier}")
    print("\n".join(OTHER))


if __name__ == "__main__":
    main()
