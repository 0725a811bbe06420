"""One subgraph as the rules look at it."""

from __future__ import annotations

from harness.model.graph import Model, Operator, SubGraph, Tensor
from harness.units import quoted, safe_text


class Scope:
    """A subgraph of a model whose indices are all valid, with the facts that several rules need."""

    __slots__ = ("data_sizes", "kernels", "model", "subgraph", "tensors", "writers")

    def __init__(self, model: Model, subgraph: SubGraph, kernels: str) -> None:
        self.model = model
        self.subgraph = subgraph
        self.kernels = kernels
        self.tensors = subgraph.tensors
        #: bytes of constant data per tensor, 0 for none
        self.data_sizes = [model.buffers[tensor.buffer].size_bytes for tensor in subgraph.tensors]
        #: tensor → the operators that write it, in order
        self.writers: dict[int, list[int]] = {}
        for operator in subgraph.operators:
            for index in operator.outputs:
                self.writers.setdefault(index, []).append(operator.index)

    def inputs(self, operator: Operator) -> list[Tensor | None]:
        tensors = self.tensors
        return [tensors[index] if index >= 0 else None for index in operator.inputs]

    def outputs(self, operator: Operator) -> list[Tensor]:
        return [self.tensors[index] for index in operator.outputs]

    def at(self, operator: Operator | None = None, tensor: int | None = None) -> str:
        """``subgraph 0, operator 3 (CONV_2D), tensor 7 ("w")``."""
        place = f"subgraph {self.subgraph.index}"
        if operator is not None:
            place += f", operator {operator.index} ({safe_text(operator.name, 60)})"
        if tensor is not None:
            place += f", tensor {tensor}"
            if name := self.tensors[tensor].name:
                place += f" ({quoted(name, 60)})"
        return place
