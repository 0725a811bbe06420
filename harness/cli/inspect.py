"""``harness inspect``: the tables of a model file, as they stand in it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import click

from harness.cli.boundary import error_fields
from harness.errors import ExitCode, ModelFileError
from harness.model.graph import Model, Operator, Tensor
from harness.model.reader import read_model
from harness.model.sizes import arena_size_bytes, type_name
from harness.model.state import is_stateful, resource_variable_count, used_operators
from harness.units import format_bytes, format_size, safe_text

#: Bytes of a metadata buffer that are shown.
_METADATA_SHOWN = 64


@click.command("inspect")
@click.argument("models", nargs=-1, required=True, type=click.Path(), metavar="MODEL…")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def inspect(models: tuple[str, ...], as_json: bool) -> int:
    """Show the tables of model files: operator codes, subgraphs, tensors, operators, buffers, metadata, signatures.

    Shows what the file says, right or wrong; `harness check` judges it.
    """
    worst = ExitCode.DONE
    files: list[dict[str, Any]] = []
    for path in models:
        try:
            model = read_model(path, lenient=True)
        except ModelFileError as error:
            worst = max(worst, error.exit_code)
            files.append({"path": path, "error": error_fields(error)})
            if not as_json:
                click.echo(f"{safe_text(path)}: {error.message}\n  {error.remedy}", err=True)
            continue
        if as_json:
            files.append(describe(model))
        else:
            _print(model)
    if as_json:
        click.echo(json.dumps({"schema": "harness.inspect", "schema_version": 1, "files": files}, indent=2))
    return worst


def describe(model: Model) -> dict[str, Any]:
    """A model as plain values, for JSON."""
    return {
        "path": model.path,
        "bytes": model.size_bytes,
        "sha256": model.sha256,
        "schema_version": model.schema_version,
        "description": model.description,
        "stateful": is_stateful(model),
        "resource_variables": resource_variable_count(model),
        "used_operators": [code.custom_name or code.name for code in used_operators(model)],
        "operator_codes": [
            {
                "index": code.index,
                "name": code.name,
                "custom_name": code.custom_name,
                "code": code.code,
                "builtin_code": code.builtin_code,
                "deprecated_builtin_code": code.deprecated_builtin_code,
                "version": code.version,
            }
            for code in model.operator_codes
        ],
        "subgraphs": [
            {
                "index": subgraph.index,
                "name": subgraph.name,
                "inputs": list(subgraph.inputs),
                "outputs": list(subgraph.outputs),
                "tensors": [_tensor(model, tensor) for tensor in subgraph.tensors],
                "operators": [_operator(operator) for operator in subgraph.operators],
            }
            for subgraph in model.subgraphs
        ],
        "buffers": [
            {
                "index": buffer.index,
                "offset": buffer.offset,
                "bytes": buffer.size_bytes,
                "external": list(buffer.external) if buffer.external else None,
            }
            for buffer in model.buffers
        ],
        "metadata": [
            {"name": entry.name, "buffer": entry.buffer, "data_start": _metadata_hex(model, entry.buffer)}
            for entry in model.metadata
        ],
        "signatures": [
            {
                "key": signature.key,
                "subgraph": signature.subgraph,
                "inputs": [{"name": name, "tensor": index} for name, index in signature.inputs],
                "outputs": [{"name": name, "tensor": index} for name, index in signature.outputs],
            }
            for signature in model.signatures
        ],
    }


def _tensor(model: Model, tensor: Tensor) -> dict[str, Any]:
    quantization = tensor.quantization
    return {
        "index": tensor.index,
        "name": tensor.name,
        "type": type_name(tensor.type),
        "shape": None if tensor.shape is None else list(tensor.shape),
        "shape_signature": None if tensor.shape_signature is None else list(tensor.shape_signature),
        "bytes": arena_size_bytes(tensor),
        "buffer": tensor.buffer,
        "constant": _has_data(model, tensor),
        "variable": tensor.is_variable,
        "sparse": tensor.is_sparse,
        "quantization": None
        if quantization is None
        else {
            "scales": None if quantization.scales is None else [_number(scale) for scale in quantization.scales],
            "zero_points": None if quantization.zero_points is None else list(quantization.zero_points),
            "dimension": quantization.quantized_dimension,
        },
    }


def _operator(operator: Operator) -> dict[str, Any]:
    return {
        "index": operator.index,
        "name": operator.name,
        "opcode": operator.opcode.index,
        "inputs": list(operator.inputs),
        "outputs": list(operator.outputs),
        "intermediates": list(operator.intermediates),
        "options_table": operator.options_table or None,
        "options": {name: _option(value) for name, value in operator.options.items()},
        "custom_options": operator.custom_options.hex() or None,
    }


def _option(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [_number(item) for item in value]
    return _number(value)


def _number(value: Any) -> Any:
    """JSON has no infinities: they become text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _has_data(model: Model, tensor: Tensor) -> bool:
    return tensor.buffer < len(model.buffers) and model.buffers[tensor.buffer].size_bytes > 0


def _metadata_hex(model: Model, buffer: int) -> str | None:
    return bytes(model.buffer_data(buffer)[:_METADATA_SHOWN]).hex() if buffer < len(model.buffers) else None


def _print(model: Model) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.cli.console import stdout_console

    console = stdout_console()

    def table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
        if not rows:
            return
        grid = Table(box=None, pad_edge=False, header_style="bold", title=Text(title), title_justify="left")
        for column in columns:
            grid.add_column(column, overflow="fold", justify="right" if column in _NUMERIC else "left")
        for row in rows:
            grid.add_row(*(Text(safe_text(str(cell))) for cell in row))
        console.print()
        console.print(grid)

    console.print(Text(f"{safe_text(model.path)}  {format_size(model.size_bytes)}", style="bold"), soft_wrap=True)
    console.print(Text(f"  sha256 {model.sha256}"), soft_wrap=True)
    console.print(Text(f"  schema version {model.schema_version}, description {safe_text(model.description)!r}"))
    state = "keeps state between runs" if is_stateful(model) else "keeps no state"
    console.print(Text(f"  {state}, {resource_variable_count(model)} resource variables"))
    codes = [
        (code.index, code.custom_name or code.name, code.version, code.builtin_code, code.deprecated_builtin_code)
        for code in model.operator_codes
    ]
    table("operator codes", ("code", "operator", "version", "builtin", "deprecated"), codes)
    for subgraph in model.subgraphs:
        name = f'subgraph {subgraph.index} "{safe_text(subgraph.name)}"'
        ends = f"inputs {_list(subgraph.inputs)}, outputs {_list(subgraph.outputs)}"
        tensors = [_tensor_row(model, tensor) for tensor in subgraph.tensors]
        table(f"{name}: {ends}", ("tensor", "type", "shape", "bytes", "buffer", "kind", "scale", "name"), tensors)
        operators = [
            (op.index, op.name, _list(op.inputs), _list(op.outputs), _options_text(op)) for op in subgraph.operators
        ]
        table(f"{name}: operators", ("number", "operator", "inputs", "outputs", "options"), operators)
    buffers = [
        (buffer.index, f"{buffer.offset:,}", format_bytes(buffer.size_bytes), buffer.external or "")
        for buffer in model.buffers
        if buffer.size_bytes or buffer.external
    ]
    table("buffers with data", ("buffer", "offset", "bytes", "external"), buffers)
    metadata = [(entry.name, entry.buffer, _metadata_hex(model, entry.buffer)) for entry in model.metadata]
    table("metadata", ("name", "buffer", "data (hex, start)"), metadata)
    signatures = [
        (signature.key, signature.subgraph, side, alias, index)
        for signature in model.signatures
        for side, ends in (("input", signature.inputs), ("output", signature.outputs))
        for alias, index in ends
    ]
    table("signatures", ("key", "subgraph", "side", "name", "tensor"), signatures)


_NUMERIC = frozenset({"code", "version", "builtin", "deprecated", "tensor", "bytes", "buffer", "number", "offset"})


def _tensor_row(model: Model, tensor: Tensor) -> tuple[object, ...]:
    size = arena_size_bytes(tensor)
    kinds = ["variable"] * tensor.is_variable + ["constant"] * _has_data(model, tensor) + ["sparse"] * tensor.is_sparse
    shape = "none" if tensor.shape is None else _list(tensor.shape)
    quantization = tensor.quantization
    scale = ""
    if quantization is not None and quantization.scales:
        scale = f"{quantization.scales[0]:g} / {(quantization.zero_points or ('none',))[0]}"
        if len(quantization.scales) > 1:
            scale = f"{len(quantization.scales)} scales"
    return (
        tensor.index,
        type_name(tensor.type),
        shape,
        "?" if size is None else format_bytes(size),
        tensor.buffer,
        " ".join(kinds),
        scale,
        tensor.name,
    )


def _list(indices: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, indices[:24]))
    return f"[{shown}{', …' if len(indices) > 24 else ''}]"


def _options_text(operator: Operator) -> str:
    if operator.has_custom_options:
        return f"{len(operator.custom_options):,} bytes of custom options"
    return ", ".join(f"{name}={_option(value)}" for name, value in operator.options.items())
