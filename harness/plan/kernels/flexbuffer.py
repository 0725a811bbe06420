"""The options of custom operators: a FlexBuffer map in the operator's ``custom_options``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.plan.node import Node


@dataclass(frozen=True, slots=True)
class CustomOptions:
    node: Node
    values: Mapping[str, Any]

    def integer(self, name: str) -> int:
        """Refuses the model when the option is missing or not a number."""
        value = self.values.get(name)
        self.node.ensure(isinstance(value, (int, float)), f"custom option {name} is missing")
        return int(value) if value is not None else 0


def custom_options(node: Node) -> CustomOptions:
    """Reads the map. Refuses the model when the bytes are not one."""
    from flatbuffers import flexbuffers

    try:
        values = flexbuffers.Loads(bytes(node.operator.custom_options))
    except Exception:  # the reader raises whatever its arithmetic runs into
        values = None
    node.ensure(isinstance(values, dict), "the custom options are not a FlexBuffer map")
    return CustomOptions(node, values if isinstance(values, dict) else {})
