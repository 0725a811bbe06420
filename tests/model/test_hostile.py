"""Models made to keep the tool busy, or to break what it prints: each ends at once, in findings or an error."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import pytest

from harness.errors import ModelFileError, UnfitModelError
from harness.model.builder import ModelBuilder
from harness.model.checks import check_model
from harness.model.graph import Buffer, Metadata, Model, TensorType
from harness.model.reader import parse_model
from harness.model.realign import realign
from harness.model.state import resource_variable_count

F = TensorType.FLOAT32


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    started = time.process_time()
    yield
    assert time.process_time() - started < 30.0  # of this process: nothing here loops for ever


def neg(shape: tuple[int, ...]) -> bytes:
    builder = ModelBuilder(seed=1)
    g = builder.graph
    x, y = g.input(shape, F), g.tensor("y", shape, F)
    g.operator("NEG", [x], [y])
    g.output(y)
    return builder.finish()


def codes(model: Model) -> set[str]:
    return {finding.code for finding in check_model(model)}


def test_a_million_dimensions_are_not_multiplied() -> None:
    with pytest.raises(ModelFileError) as caught:
        parse_model(neg((2**31 - 1,) * 300_000))
    assert caught.value.code == "model.too_complex"


def test_a_size_beyond_any_number_is_told_in_words() -> None:
    findings = check_model(parse_model(neg((2**31 - 1,) * 64)))
    overflow = next(finding for finding in findings if finding.code == "shape.overflow")
    assert overflow.message.endswith("64 dimensions] of FLOAT32 is more than 2^63 B")


def test_a_long_chain_of_calls_is_followed_once() -> None:
    builder = ModelBuilder(seed=1)
    length = 2_000
    graphs = [builder.graph, *(builder.add_graph("g") for _ in range(length))]
    for number, graph in enumerate(graphs[:-1]):
        graph.operator("CALL_ONCE", [], [], "CallOnceOptions", {"init_subgraph_index": number + 1})
    x = builder.graph.input((1,), F)
    builder.graph.output(x)
    assert codes(parse_model(builder.finish())) == set()


def test_operators_with_very_many_tensors_are_judged_in_one_pass() -> None:
    model = parse_model(neg((1, 4)))
    graph = model.subgraphs[0]
    wide = dataclasses.replace(graph.operators[0], inputs=(0,) * 200_000, outputs=(1,) * 200_000)
    model = dataclasses.replace(model, subgraphs=(dataclasses.replace(graph, operators=(wide,)),))
    assert "operator.inputs" in codes(model)


def test_overlapping_buffers_are_not_hashed_or_copied_without_end() -> None:
    data = neg((1, 4)) + bytes(1_000_000)
    model = parse_model(data)
    overlapping = tuple(Buffer(number, 16 + number, 900_000) for number in range(2, 5_000))
    model = dataclasses.replace(model, buffers=(*model.buffers[:2], *overlapping))
    assert "layout.duplicate_buffers" not in codes(model)
    with pytest.raises(UnfitModelError, match="the buffers overlap"):
        realign(model)


def test_only_the_offline_plan_that_counts_is_looked_at() -> None:
    data = neg((1, 4)) + bytes(1_000_000)
    model = parse_model(data)
    buffers = (*model.buffers, Buffer(len(model.buffers), 0, len(data)))
    plans = tuple(Metadata("OfflineMemoryAllocation", len(model.buffers)) for _ in range(10_000))
    found = check_model(dataclasses.replace(model, buffers=buffers, metadata=plans))
    assert len([finding for finding in found if finding.code.startswith("offline.")]) <= 2


def test_very_many_resource_variables_are_counted_in_one_pass() -> None:
    builder = ModelBuilder(seed=1)
    g = builder.graph
    for number in range(1_200):
        handle = g.tensor("h", (1,), TensorType.RESOURCE)
        g.operator("VAR_HANDLE", [], [handle], "VarHandleOptions", {"container": "", "shared_name": f"v{number % 600}"})
    g.output(g.input((1,), F))
    model = parse_model(builder.finish())
    assert resource_variable_count(model) == 600
    assert "resource.names" not in codes(model)
