"""Other input shapes: only open dimensions vary, and LiteRT works out the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import UnfitModelError, UsageError
from harness.model.builder import EXAMPLES, ModelBuilder, layers
from harness.model.graph import Model, TensorType
from harness.model.reader import parse_model
from harness.shapes import dynamic_inputs, parse_shapes, with_input_shapes

pytestmark = pytest.mark.backend


def opened(model: Model, signature: tuple[int, ...]) -> Model:
    """The model with a shape signature on its first input."""
    main = model.subgraphs[0]
    index = main.inputs[0]
    tensors = list(main.tensors)
    tensors[index] = replace(tensors[index], shape_signature=signature)
    return replace(model, subgraphs=(replace(main, tensors=tuple(tensors)), *model.subgraphs[1:]))


@pytest.fixture
def model() -> Model:
    builder = ModelBuilder(seed=1)
    g = builder.graph
    x = g.input((1, 8, 4, 2), TensorType.INT8, name="features", signature=(1, -1, 4, 2))
    x = layers.conv_2d(g, x, 3, (3, 3), (2, 2))
    g.output(layers.depthwise_conv_2d(g, x))
    return parse_model(builder.finish(), "m.tflite")


def test_open_dimensions_are_found(model: Model) -> None:
    (entry,) = dynamic_inputs(model)
    assert (entry.position, entry.name, entry.shape, entry.signature) == (0, "features", (1, 8, 4, 2), (1, -1, 4, 2))


@pytest.mark.parametrize("name", ["features", "input", "0"])
def test_an_input_goes_by_name_by_position_and_as_the_only_one(model: Model, name: str) -> None:
    assert parse_shapes(model, [f"{name}=1,40,4,2"]) == {0: (1, 40, 4, 2)}


def test_a_name_may_hold_an_equals_sign(model: Model) -> None:
    with pytest.raises(UsageError, match='no input "a=b"; its inputs: "features"'):
        parse_shapes(model, ["a=b=1,2"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("features", "is not NAME=DIMS"),
        ("features=", "is not NAME=DIMS"),
        ("features=1,0,4,2", "is not NAME=DIMS"),
        ("features=1,-1,4,2", "is not NAME=DIMS"),
        ("features=1,8,4", "has 4 dimensions"),
        ("features=1,8,5,2", "dimension 2 of input .* is fixed at 4"),
        ("features=1,99999999,4,2", "would have 799999992 elements"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(model: Model, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_shapes(model, [text])
    with pytest.raises(UsageError, match="has two shapes"):
        parse_shapes(model, ["0=1,8,4,2", "input=1,9,4,2"])


def test_litert_works_out_the_shapes_behind_the_input(model: Model) -> None:
    resized = with_input_shapes(model, {0: (1, 40, 4, 2)})
    main = resized.subgraphs[0]
    assert main.tensors[main.inputs[0]].dims == (1, 40, 4, 2)
    assert main.tensors[main.operators[0].outputs[0]].dims == (1, 20, 2, 3)
    assert main.tensors[main.outputs[0]].dims == (1, 20, 2, 3)
    assert main.tensors[main.operators[0].inputs[1]].dims == model.subgraphs[0].tensors[1].dims


def test_a_shape_that_the_model_cannot_take_is_refused_with_litert_s_words() -> None:
    fixed = opened(parse_model(EXAMPLES["ds_cnn_kws"](), "kws.tflite"), (1, -1, -1, 1))
    with pytest.raises(
        UnfitModelError, match=r"LiteRT cannot give the inputs these shapes: .*num_input_elements"
    ) as caught:
        with_input_shapes(fixed, {0: (1, 490, 100, 1)})
    assert caught.value.code == "shape.refused"


def test_models_with_several_subgraphs_are_not_worked_out() -> None:
    several = parse_model(EXAMPLES["if_greater"](), "if.tflite")
    with pytest.raises(UnfitModelError, match="subgraphs; shapes are worked out for models with one"):
        with_input_shapes(several, {0: (1, 4)})
