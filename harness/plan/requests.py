"""What enters the memory plan, and when it is alive (micro_allocation_info.cc, InitializeAllocationInfo)."""

from __future__ import annotations

from collections.abc import Sequence

from harness.abi import ARENA_ALIGNMENT
from harness.model.graph import SubGraph
from harness.plan.buffer import BufferRequest
from harness.plan.lifetimes import NEVER, called_subgraphs, lifetimes
from harness.plan.offline import ONLINE, offline_offsets
from harness.plan.preparation import Preparation
from harness.plan.tensor import LiveTensor, tensor_bytes, unfit
from harness.units import align_up


def buffer_requests(preparation: Preparation) -> list[BufferRequest]:
    """Everything that enters the memory plan, in TFLM's order of addition: the tensors of all subgraphs, then the
    scratch buffers. Raises UnfitModelError where TFLM refuses."""
    model = preparation.model
    offsets = offline_offsets(model)
    times = lifetimes(model, preparation.scratch, new_code_only=preparation.abi.control_flow_by_new_code_only)
    _warn_of_old_calls(preparation)
    requests = []
    number = 0
    for subgraph, tensors in zip(model.subgraphs, preparation.tensors, strict=True):
        _ensure_no_intermediates(subgraph, tensors)
        for tensor, (first, last) in zip(tensors, times.tensors[subgraph.index], strict=True):
            offset = offsets[number] if offsets is not None else ONLINE
            number += 1
            if _is_planned(tensor, offset):
                size = tensor_bytes(tensor)
                requests.append(
                    BufferRequest(
                        size_bytes=align_up(size, ARENA_ALIGNMENT),
                        first_use=first,
                        last_use=last,
                        subgraph=subgraph.index,
                        tensor=tensor.source.index,
                        requested_bytes=size,
                        offline_offset=None if offset == ONLINE else offset,
                    )
                )
    for request, (first, last) in zip(preparation.scratch, times.scratch, strict=True):
        if (first, last) == NEVER:
            preparation.doubts.append(
                f"{request.label}: scratch buffer of operator {request.operator} in subgraph {request.subgraph}, which "
                "nothing calls: TFLM plans it with an uninitialised size"
            )
        requests.append(
            BufferRequest(
                size_bytes=align_up(request.size_bytes, ARENA_ALIGNMENT),
                first_use=first,
                last_use=last,
                subgraph=request.subgraph,
                scratch=request.number,
                operator=request.operator,
                requested_bytes=request.size_bytes,
            )
        )
    return requests


def _is_planned(tensor: LiveTensor, offset: int) -> bool:
    """InitializeAllocationInfo, needs_allocating."""
    if tensor.source.is_variable:
        return offset != ONLINE
    return not tensor.has_data and tensor_bytes(tensor) != 0


def _warn_of_old_calls(preparation: Preparation) -> None:
    if not preparation.abi.control_flow_by_new_code_only:
        return
    for subgraph, operator in preparation.model.operators():
        if called_subgraphs(operator) != called_subgraphs(operator, new_code_only=True):
            preparation.warnings.append(
                f"operator {operator.index} of subgraph {subgraph.index} ({operator.name}) has an operator code of "
                "before 2020: this TFLM gives the subgraphs that it calls no lifetime, and their tensors may overwrite "
                "its own"
            )


def _ensure_no_intermediates(subgraph: SubGraph, tensors: Sequence[LiveTensor]) -> None:
    """ValidateSubgraph."""
    for operator in subgraph.operators:
        for index in operator.intermediates:
            size = tensor_bytes(tensors[index])
            if size:
                raise unfit(f"Does not support intermediate tensor with non-zero size: {size}", "model.intermediates")
