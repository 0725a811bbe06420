"""MicroInterpreter's construction and AllocateTensors(), as the steps that they take in the arena (micro_allocator.cc,
micro_interpreter.cc, micro_interpreter_graph.cc, and the recording_ variants).

The order matters to the byte: alignment padding depends on what came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.abi import ARENA_ALIGNMENT, LINEAR_PLANNER_MAX_BUFFERS, MAX_SCRATCH_BUFFERS_PER_OP, Abi
from harness.errors import UnfitModelError
from harness.model.graph import Model, Operator, SubGraph
from harness.plan.buffer import BufferRequest
from harness.plan.core import core_named
from harness.plan.kernels import PARAMETER_STRUCTS, Kernel, kernel_for
from harness.plan.lifetimes import NEVER, called_subgraphs, lifetimes
from harness.plan.node import TYPE_BYTES, LiveTensor, Node, Preparation, described, type_name
from harness.plan.offline import ONLINE, offline_offsets
from harness.plan.setup import Category, Setup
from harness.plan.target import Interpreter, PlanTarget
from harness.units import align_up, quoted

#: GreedyMemoryPlanner::per_buffer_size(): its requirements and list entry, and three ints (size, id, offset).
_GREEDY_PARTS = ("GreedyMemoryPlanner::BufferRequirements", "GreedyMemoryPlanner::ListEntry", "int", "int", "int")


def construct(setup: Setup, abi: Abi, interpreter: Interpreter) -> None:
    """MicroAllocator::Create: the allocator, the planner and the MicroAllocator themselves."""
    recording = "Recording" if interpreter is Interpreter.RECORDING else ""
    planner = "LinearMemoryPlanner" if interpreter is Interpreter.PRESERVE_ALL else "GreedyMemoryPlanner"
    for struct in (f"{recording}SingleArenaBufferAllocator", planner, f"{recording}MicroAllocator"):
        _persist_struct(setup, abi, struct, Category.ALLOCATOR)


def prepare_model(model: Model, target: PlanTarget, abi: Abi, setup: Setup) -> Preparation:
    """AllocateTensors() up to the point where all kernels are prepared. Raises UnfitModelError where TFLM refuses."""
    if not model.subgraphs:
        raise _unfit("it has no subgraph", "model.no_subgraph")
    _create_resource_variables(setup, abi, model)
    _persist_struct(setup, abi, "MicroBuiltinDataAllocator", Category.ALLOCATOR)
    setup.resize_head(_scratch_head_bytes(abi, 0), "scratch requests")
    count = len(model.subgraphs)
    _persist_struct(setup, abi, "SubgraphAllocations", Category.STRUCTURE, count)
    for subgraph in model.subgraphs:
        setup.subgraph = subgraph.index
        _persist_struct(setup, abi, "TfLiteEvalTensor", Category.EVAL_TENSOR, len(subgraph.tensors))
    for subgraph in model.subgraphs:
        setup.subgraph = subgraph.index
        _persist_struct(setup, abi, "NodeAndRegistration", Category.NODE, len(subgraph.operators))
    preparation = Preparation(model, abi, core_named(target.core), setup, _live_tensors(model))
    nodes = [_node(preparation, subgraph, operator, target) for subgraph, operator in model.operators()]
    for node, _ in _each(setup, nodes):
        _parse_parameters(setup, abi, node.operator)
    for node, kernel in _each(setup, nodes):
        if kernel.init is not None:
            kernel.init(node)
    for node, kernel in _each(setup, nodes):
        _prepare(preparation, node, kernel)
    return preparation


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


def plan_memory(
    preparation: Preparation, interpreter: Interpreter, requests: Sequence[BufferRequest], head_bytes: int
) -> None:
    """FinishModelAllocation: the scratch handles, the lifetimes' table, variable tensors, the planner's own table, and
    then the head at its final size."""
    setup, abi, model = preparation.setup, preparation.abi, preparation.model
    scratch_count = len(preparation.scratch)
    if scratch_count:
        _persist_struct(setup, abi, "ScratchBufferHandle", Category.SCRATCH_HANDLE, scratch_count)
    subgraphs = ((abi.size("size_t") * len(model.subgraphs), abi.alignment("size_t")),)
    setup.temp(subgraphs, "subgraph offsets for memory planning")
    count = sum(len(subgraph.tensors) for subgraph in model.subgraphs) + scratch_count
    infos = ((abi.size("AllocationInfo") * count, abi.alignment("AllocationInfo")),)
    setup.temp(infos, f"AllocationInfo of {count} tensors and scratch buffers for memory planning")
    _allocate_variables(preparation)
    if interpreter is Interpreter.PRESERVE_ALL:
        _ensure_linear(requests)
    elif requests:
        setup.planner_table(len(requests), sum(abi.size(part) for part in _GREEDY_PARTS))
    setup.resize_head(0, "scratch requests are done with")
    setup.resize_head(head_bytes, "memory plan (head)")


def allocate_inputs_and_outputs(preparation: Preparation) -> None:
    """The persistent TfLiteTensors that input() and output() return: the last allocations of all."""
    setup, abi, model = preparation.setup, preparation.abi, preparation.model
    setup.subgraph = 0
    for role, indices in (("input", model.subgraphs[0].inputs), ("output", model.subgraphs[0].outputs)):
        setup.persist(abi.pointer_bytes * len(indices), ARENA_ALIGNMENT, f"{role} tensor pointers", Category.BUFFER)
        for number, index in enumerate(indices):
            tensor = preparation.tensors[0][index]
            (size, alignment), *quantization = preparation.temp_parts(tensor)
            setup.persist(size, alignment, f"TfLiteTensor of {role} {number}", Category.TENSOR)
            for size, alignment in quantization:
                setup.persist(size, alignment, f"quantization of {role} {number}", Category.QUANTIZATION)
    setup.subgraph = None


def tensor_bytes(tensor: LiveTensor) -> int:
    """TfLiteEvalTensorByteLength, which TFLM computes in 32 bits. Raises UnfitModelError beyond them, for negative
    dimensions and for a type without a size."""
    source = tensor.source
    if source.type not in TYPE_BYTES:
        raise _unfit(
            f"{described(source)} has type {type_name(source.type)}, which has no fixed size", "model.tensor_type"
        )
    if any(dim < 0 for dim in tensor.dims):
        raise _unfit(f"{described(source)} has a negative dimension: {list(tensor.dims)}", "model.dynamic_tensor")
    if tensor.size_bytes >= 2**31:
        raise _unfit(
            f"{described(source)} has {tensor.size_bytes:,} bytes: more than 32 bits hold", "model.tensor_size"
        )
    return tensor.size_bytes


def _create_resource_variables(setup: Setup, abi: Abi, model: Model) -> None:
    """The Python wrapper makes MicroResourceVariables in the model's arena (python/tflite_micro/interpreter_wrapper.cc,
    and count_resource_variables: one per shared name). Firmware gives them an arena of their own."""
    if not abi.resource_variables_in_arena:
        return
    names = {op.options.get("shared_name") for _, op in model.operators() if op.opcode.name == "VAR_HANDLE"}
    if names:
        for struct, count in (
            ("MicroResourceVariables", 1),
            ("MicroResourceVariables::MicroResourceVariable", len(names)),
        ):
            setup.persist(abi.size(struct) * count, ARENA_ALIGNMENT, struct.rpartition("::")[2], Category.BUFFER)


def _live_tensors(model: Model) -> list[list[LiveTensor]]:
    """AllocateTfLiteEvalTensors: a tensor has data, and is constant, when its buffer holds bytes in the file."""
    stored = [buffer.size_bytes > 0 for buffer in model.buffers]
    return [
        [LiveTensor(tensor, tensor.dims, stored[tensor.buffer], stored[tensor.buffer]) for tensor in subgraph.tensors]
        for subgraph in model.subgraphs
    ]


def _node(preparation: Preparation, subgraph: SubGraph, operator: Operator, target: PlanTarget) -> tuple[Node, Kernel]:
    """GetRegistrationFromOpCode. Builtin operators without a rule do not exist in TFLM; a custom operator may be
    anybody's, and is planned as if it asked for nothing, which the plan says."""
    kernel = kernel_for(operator, target.kernels)
    node = Node(preparation, subgraph, operator)
    if kernel is None and operator.opcode.name != "CUSTOM":
        raise _unfit(
            f"Didn't find op for builtin opcode {quoted(operator.name)}: TFLM has no such kernel", "model.operator"
        )
    if operator.opcode.name == "CUSTOM" and not operator.opcode.custom_name:
        raise _unfit("Operator with CUSTOM builtin_code has no custom_code.", "model.operator")
    if operator.opcode.name != "CUSTOM" and operator.custom_options:
        raise _unfit(
            f"Unsupported behavior: found builtin operator {operator.name} with custom options.", "model.operator"
        )
    if kernel is None:
        node.doubt("no rule for this custom operator: its buffers are not in the plan")
    return node, kernel or Kernel(None, None)


def _each(setup: Setup, nodes: Sequence[tuple[Node, Kernel]]) -> Iterator[tuple[Node, Kernel]]:
    """Each operator in turn, with the steps of the setup put to its account."""
    for node, kernel in nodes:
        setup.subgraph, setup.operator = node.subgraph.index, node.operator.index
        yield node, kernel
    setup.subgraph = setup.operator = None


def _parse_parameters(setup: Setup, abi: Abi, operator: Operator) -> None:
    struct = PARAMETER_STRUCTS.get(operator.opcode.name)
    if struct is not None:
        _persist_struct(setup, abi, struct, Category.PARAMETERS)


def _prepare(preparation: Preparation, node: Node, kernel: Kernel) -> None:
    """One turn of PrepareSubgraphs: Prepare, the check for dynamic outputs, FinishPrepareNodeAllocations."""
    setup = preparation.setup
    if kernel.prepare is not None:
        kernel.prepare(node)
    for index in node.operator.outputs:
        tensor = preparation.tensors[node.subgraph.index][index] if index >= 0 else None
        if tensor is not None and tensor.dims != (0,) and any(dim <= 0 for dim in tensor.dims):
            raise _unfit(
                f"Op#{node.operator.index} ({node.operator.name}) of subgraph {node.subgraph.index} has dynamic tensor "
                f"#{index} {list(tensor.dims)}. Dynamic tensors are not supported",
                "model.dynamic_tensor",
            )
    setup.reset_temp()
    setup.resize_head(_scratch_head_bytes(preparation.abi, len(preparation.scratch)), "scratch requests")


def _scratch_head_bytes(abi: Abi, requests: int) -> int:
    """The head keeps room for all requests so far and as many as one more operator may make."""
    return abi.size("internal::ScratchBufferRequest") * (requests + MAX_SCRATCH_BUFFERS_PER_OP)


def _is_planned(tensor: LiveTensor, offset: int) -> bool:
    """InitializeAllocationInfo, needs_allocating."""
    if tensor.source.is_variable:
        return offset != ONLINE
    return not tensor.has_data and tensor_bytes(tensor) != 0


def _allocate_variables(preparation: Preparation) -> None:
    """Variable tensors are persistent, unless the offline plan places them."""
    offsets = offline_offsets(preparation.model)
    number = 0
    for tensors in preparation.tensors:
        for tensor in tensors:
            if tensor.source.is_variable and (offsets is None or offsets[number] == ONLINE):
                label = f"variable {described(tensor.source)}"
                preparation.setup.persist(tensor_bytes(tensor), ARENA_ALIGNMENT, label, Category.VARIABLE)
            number += 1


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
                raise _unfit(f"Does not support intermediate tensor with non-zero size: {size}", "model.intermediates")


def _ensure_linear(requests: Sequence[BufferRequest]) -> None:
    if any(request.offline_offset is not None for request in requests):
        raise _unfit("preserve_all_tensors uses the linear planner, which has no offline plan", "model.offline_plan")
    if len(requests) > LINEAR_PLANNER_MAX_BUFFERS:
        raise _unfit(
            f"Too many buffers (max is {LINEAR_PLANNER_MAX_BUFFERS}): the linear planner of preserve_all_tensors has "
            f"no room for {len(requests)}",
            "model.too_many_buffers",
        )


def _persist_struct(setup: Setup, abi: Abi, struct: str, category: Category, count: int = 1) -> None:
    label = struct if count == 1 else f"{count} {struct}"
    setup.persist(abi.size(struct) * count, abi.alignment(struct), label, category)


def _unfit(cause: str, code: str) -> UnfitModelError:
    return UnfitModelError(f"TFLM refuses the model: {cause}", code=code, remedy="harness check names what to change")
