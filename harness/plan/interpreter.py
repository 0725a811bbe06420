"""MicroInterpreter's construction and AllocateTensors(), as the steps that they take in the arena (micro_allocator.cc,
micro_interpreter.cc, micro_interpreter_graph.cc, and the recording_ variants).

The order matters to the byte: alignment padding depends on what came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.abi import ARENA_ALIGNMENT, LINEAR_PLANNER_MAX_BUFFERS, MAX_SCRATCH_BUFFERS_PER_OP, Abi
from harness.model.graph import Model, Operator, SubGraph
from harness.plan.buffer import BufferRequest
from harness.plan.core import core_named
from harness.plan.kernels import PARAMETER_STRUCTS, Kernel, kernel_for
from harness.plan.node import Node
from harness.plan.offline import ONLINE, offline_offsets
from harness.plan.preparation import Preparation
from harness.plan.setup import Category, Setup
from harness.plan.target import Interpreter, PlanTarget
from harness.plan.tensor import LiveTensor, described, tensor_bytes, unfit
from harness.units import quoted

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
        raise unfit("it has no subgraph", "model.no_subgraph")
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
            _run(kernel.init, node)
    for node, kernel in _each(setup, nodes):
        _prepare(preparation, node, kernel)
    return preparation


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
        raise unfit(
            f"Didn't find op for builtin opcode {quoted(operator.name)}: TFLM has no such kernel", "model.operator"
        )
    if operator.opcode.name == "CUSTOM" and not operator.opcode.custom_name:
        raise unfit("Operator with CUSTOM builtin_code has no custom_code.", "model.operator")
    if operator.opcode.name != "CUSTOM" and operator.custom_options:
        raise unfit(
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
        _run(kernel.prepare, node)
    for index in node.operator.outputs:
        tensor = preparation.tensors[node.subgraph.index][index] if index >= 0 else None
        if tensor is not None and tensor.dims != (0,) and any(dim <= 0 for dim in tensor.dims):
            raise unfit(
                f"Op#{node.operator.index} ({node.operator.name}) of subgraph {node.subgraph.index} has dynamic tensor "
                f"#{index} {list(tensor.dims)}. Dynamic tensors are not supported",
                "model.dynamic_tensor",
            )
    setup.reset_temp()
    setup.resize_head(_scratch_head_bytes(preparation.abi, len(preparation.scratch)), "scratch requests")


def _run(rule: Callable[[Node], None], node: Node) -> None:
    """A kernel's rule. TFLM's kernels read dimensions without looking at the rank, and beyond them what lies there."""
    try:
        rule(node)
    except (IndexError, ZeroDivisionError) as exc:
        operator = node.operator
        raise unfit(
            f"{quoted(operator.name, 60)} (operator {operator.index} of subgraph {node.subgraph.index}) reads "
            "dimensions that its tensors do not have, or divides by one that is 0",
            "model.prepare",
        ) from exc


def _scratch_head_bytes(abi: Abi, requests: int) -> int:
    """The head keeps room for all requests so far and as many as one more operator may make."""
    return abi.size("internal::ScratchBufferRequest") * (requests + MAX_SCRATCH_BUFFERS_PER_OP)


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


def _ensure_linear(requests: Sequence[BufferRequest]) -> None:
    if any(request.offline_offset is not None for request in requests):
        raise unfit("preserve_all_tensors uses the linear planner, which has no offline plan", "model.offline_plan")
    if len(requests) > LINEAR_PLANNER_MAX_BUFFERS:
        raise unfit(
            f"Too many buffers (max is {LINEAR_PLANNER_MAX_BUFFERS}): the linear planner of preserve_all_tensors has "
            f"no room for {len(requests)}",
            "model.too_many_buffers",
        )


def _persist_struct(setup: Setup, abi: Abi, struct: str, category: Category, count: int = 1) -> None:
    label = struct if count == 1 else f"{count} {struct}"
    setup.persist(abi.size(struct) * count, abi.alignment(struct), label, category)
