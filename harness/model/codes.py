"""Every code that a check can give: its severity, what it means, and what to do. docs/checks.md is written from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.model.finding import Finding, Severity

_RECONVERT = "convert the model again"
_TAKE_INT8 = "convert with full int8 quantisation (representative dataset, TFLITE_BUILTINS_INT8)"
_DAMAGED = "the file is damaged or its writer is faulty: convert the model again"


@dataclass(frozen=True, slots=True)
class Code:
    severity: Severity
    meaning: str
    remedy: str


def _refused(meaning: str, remedy: str) -> Code:
    return Code(Severity.REFUSED, meaning, remedy)


def _warning(meaning: str, remedy: str) -> Code:
    return Code(Severity.WARNING, meaning, remedy)


def _info(meaning: str, remedy: str = "") -> Code:
    return Code(Severity.INFO, meaning, remedy)


#: Codes of a file that is no readable model: ``ModelFileError`` carries them, and ``check`` shows them as a finding.
FILE_CODES: Mapping[str, Code] = {
    "model.archive": _refused("The file is an archive or compressed.", "unpack it and name the .tflite inside"),
    "model.damaged": _refused("A table, vector or offset of the flatbuffer cannot be right.", _DAMAGED),
    "model.empty": _refused("The file has no bytes.", "copy or convert it again"),
    "model.identifier": _refused("Bytes 4 to 8 are not TFL3.", "name a .tflite file"),
    "model.lfs_pointer": _refused("The file is a Git LFS pointer.", "run git lfs pull"),
    "model.not_a_file": _refused("The path is a directory, a pipe or a device.", "name a .tflite file"),
    "model.other_format": _refused("The file is of another known format.", "convert it to .tflite"),
    "model.shifted": _refused("TFL3 stands in another place.", "remove the bytes before the model"),
    "model.size_prefixed": _refused("The flatbuffer is size-prefixed.", "remove the first 4 bytes"),
    "model.text": _refused("The file is text.", "name a .tflite file"),
    "model.too_large": _refused("The file is larger than a flatbuffer can be (2 GiB).", "name a .tflite file"),
    "model.too_complex": _refused("The file makes the reader do more than any real model.", _DAMAGED),
    "model.truncated": _refused("Something reaches past the end of the file.", "copy or convert it again"),
    "model.unreadable": _refused("The file cannot be opened.", "check the path and its permissions"),
}

#: Codes of findings.
CODES: Mapping[str, Code] = {
    # the file
    "schema.version": _refused(
        "The schema version is not 3. TFLM does not look and runs the model; LiteRT refuses it.", _RECONVERT
    ),
    "graph.no_subgraphs": _refused("The model has no subgraph; TFLM crashes.", _RECONVERT),
    "graph.empty": _refused("The main subgraph has neither operators nor outputs.", "nothing runs: " + _RECONVERT),
    "graph.no_outputs": _refused(
        "The main subgraph has no outputs: nothing can be compared, and TFLM may crash.", _RECONVERT
    ),
    "graph.no_operators": _warning("The main subgraph computes nothing.", "check that this is the model you meant"),
    "metadata.min_runtime_version": _warning(
        "min_runtime_version is missing or is no version.", "nothing to do if the other checks pass"
    ),
    "metadata.newer_runtime": _warning(
        "The converter asks for a newer runtime than the pinned TFLM is built with.",
        "compare the outputs with LiteRT before you rely on them",
    ),
    "metadata.compressed": _refused(
        "The model has compressed tensors (COMPRESSION_METADATA).",
        "use the uncompressed model: the pinned TFLM is built without compression",
    ),
    "layout.unaligned_buffers": _warning(
        "Constant data does not start on 16 bytes in the file.",
        "harness check --realign OUT writes an aligned copy that computes the same",
    ),
    "layout.duplicate_buffers": _info("Buffers hold the same bytes; each takes flash."),
    "layout.appended_archive": _info("A zip archive (model metadata) stands behind the flatbuffer; it takes flash."),
    "buffer.external": _refused(
        "Constant data lies outside the flatbuffer. TFLM sees an empty tensor and computes with what is in memory.",
        "convert without external buffers (inline weights)",
    ),
    "buffer.sentinel": _warning("Buffer 0, the empty sentinel, holds data.", _RECONVERT),
    # indices
    "index.buffer": _refused("A tensor names a buffer that is not there.", _DAMAGED),
    "index.metadata_buffer": _refused("A metadata entry names a buffer that is not there.", _DAMAGED),
    "index.graph_input": _refused("A subgraph input names a tensor that is not there.", _DAMAGED),
    "index.graph_output": _refused("A subgraph output names a tensor that is not there.", _DAMAGED),
    "index.operator_input": _refused("An operator reads a tensor that is not there.", _DAMAGED),
    "index.operator_output": _refused("An operator writes a tensor that is not there.", _DAMAGED),
    "index.operator_intermediate": _refused("An operator's intermediate is not there.", _DAMAGED),
    "index.opcode": _refused("An operator names an operator code that is not there.", _DAMAGED),
    "index.signature": _refused("A signature names a subgraph or tensor that is not there.", _DAMAGED),
    # operators
    "operator.unsupported": _refused(
        "TFLM has no kernel for the operator.", "replace it in the source model, or compute it outside the model"
    ),
    "operator.custom": _refused(
        "TFLM does not register a custom operator of this name.",
        "remove the operator, or name a TFLM build that registers it",
    ),
    "operator.custom_unnamed": _refused("A custom operator has no name.", _DAMAGED),
    "operator.flex": _refused(
        "The operator needs TensorFlow itself (Flex delegate).", "convert with TFLITE_BUILTINS only, no SELECT_TF_OPS"
    ),
    "operator.accelerator": _refused(
        "The operator is code for an accelerator.", "use the model before it was compiled for the accelerator"
    ),
    "operator.version": _warning(
        "The operator's version is unknown. TFLM does not look at it; what it stands for may be missing.",
        "compare the outputs with LiteRT before you rely on them",
    ),
    "operator.inputs": _refused("The kernel wants other inputs or outputs, or one that is absent.", _RECONVERT),
    "operator.too_many_inputs": _refused("The kernel takes fewer inputs.", "split the operator into several"),
    "operator.options_missing": _refused("The operator's options are absent or of another operator.", _RECONVERT),
    "operator.options_value": _refused("An option has a value that the kernel refuses or divides by.", _RECONVERT),
    "operator.custom_options": _refused("A builtin operator has custom options; TFLM refuses that.", _RECONVERT),
    "operator.external_options": _refused("Custom options lie outside the flatbuffer.", _RECONVERT),
    "operator.input_not_constant": _refused(
        "The kernel needs the value of this input when memory is planned.",
        "make the input a constant of the model",
    ),
    "operator.lstm_variant": _refused(
        "The LSTM has inputs that TFLM's LSTM does not know (peephole, projection, layer norm).",
        "train a standard LSTM: these inputs must be absent (-1)",
    ),
    "operator.state_not_variable": _refused("The state tensor is not a variable tensor.", _RECONVERT),
    "operator.intermediate": _refused("An intermediate tensor is not of size 0.", _RECONVERT),
    "operator.in_place": _refused(
        "A tensor is input and output of one operator. LiteRT refuses that; what a kernel makes of it is chance.",
        _RECONVERT,
    ),
    "operator.duplicate_codes": _info("Several operator codes name one operator; the resolver needs it once."),
    "operator.unused_code": _info("An operator code is used by no operator."),
    # types
    "type.unsupported": _refused("The kernel does not take these types.", _TAKE_INT8),
    "type.mismatch": _refused(
        "Tensors of one operator have types that do not belong together. TFLM may run this and give wrong numbers.",
        _RECONVERT,
    ),
    "type.hybrid": _refused(
        "Hybrid: float activations with integer weights (dynamic-range quantisation).",
        _TAKE_INT8 + ", or convert without optimisation for float",
    ),
    "type.uint8": _refused("uint8 quantisation (before TensorFlow 2.4) is not supported.", _TAKE_INT8),
    "type.float16": _refused("float16 tensors are not supported.", "convert without float16 optimisation"),
    "type.int4_activation": _refused("Only constant weights may be int4.", _TAKE_INT8),
    "type.string": _refused("TFLM has no strings.", "do the text processing outside the model"),
    "type.unsized": _refused("TFLM cannot size a tensor of this type.", _TAKE_INT8),
    # tensors
    "shape.dynamic": _refused(
        "A dimension is negative: the shape is not known.", "convert with fixed input shapes (a fixed batch size)"
    ),
    "shape.signature": _info("shape_signature has unknown dimensions; TFLM uses `shape`, which is fixed."),
    "shape.overflow": _refused(
        "The tensor has 2^31 bytes or more. TFLM's 32-bit arithmetic overflows, silently.", "make the tensor smaller"
    ),
    "shape.zero": _refused("An operator writes a tensor of size 0; TFLM calls it dynamic.", "remove the operator"),
    "shape.rank": _refused("The kernel does not take tensors of this rank.", "reshape to fewer dimensions"),
    "shape.mismatch": _refused(
        "The shapes of one operator do not belong together. TFLM hardly checks and may read or write past the ends.",
        _RECONVERT,
    ),
    "constant.short": _refused(
        "The constant data is shorter than its shape. TFLM reads on into what follows.", _DAMAGED
    ),
    "constant.long": _warning("The constant data is longer than its shape.", _RECONVERT),
    "tensor.sparse": _refused("The tensor is stored sparse.", "densify it: convert without sparsity"),
    "tensor.variable_with_data": _refused(
        "A variable tensor holds data. TFLM ignores the data and starts from 0.", _RECONVERT
    ),
    # quantisation
    "quantization.missing": _refused("An integer tensor of the kernel has no scale and zero point.", _RECONVERT),
    "quantization.scale": _refused("A scale is 0, negative or not finite.", _RECONVERT),
    "quantization.zero_point": _refused("A zero point is outside its type, or not what the kernel wants.", _RECONVERT),
    "quantization.channels": _refused("The number of scales is not the number of channels.", _RECONVERT),
    "quantization.count": _warning("There are not as many zero points as scales, nor one.", _RECONVERT),
    "quantization.mismatch": _refused("Scales do not belong together as the kernel wants.", _RECONVERT),
    "quantization.unexpected": _refused("The kernel takes int32 only without quantisation.", _RECONVERT),
    # order
    "graph.not_topological": _refused(
        "An operator reads a tensor before it is written. TFLM computes with old memory.",
        "sort the operators: convert the model again",
    ),
    "graph.never_written": _refused(
        "A tensor is read, and nothing writes it. TFLM computes with what is in memory.", _DAMAGED
    ),
    "graph.output_never_written": _refused("A graph output is written by nothing.", _DAMAGED),
    "graph.written_twice": _warning("Several operators write one tensor.", _RECONVERT),
    "graph.output_is_constant_data": _refused(
        "An operator writes a tensor that has constant data: TFLM would write into flash.", _DAMAGED
    ),
    "graph.constant_input": _warning("A graph input has constant data in flash.", "do not write to that input"),
    "graph.constant_output": _info("A graph output is a constant; its pointer may lie in flash: do not write to it."),
    # control flow
    "flow.subgraph_index": _refused("IF, WHILE or CALL_ONCE names a subgraph that is not there.", _DAMAGED),
    "flow.recursive": _refused("A subgraph calls itself; TFLM crashes.", "unroll the recursion"),
    "flow.mismatch": _refused(
        "The tensors of a control-flow operator and its subgraph do not match; TFLM copies past their ends.", _DAMAGED
    ),
    "flow.uncalled": _warning(
        "No operator calls the subgraph. TFLM runs subgraph 0 only, and the others still take memory.",
        "remove the subgraph, or export the one signature that you need",
    ),
    "resource.names": _refused(
        "Several resource variables, and one lacks its name or container: TFLM compares null pointers and crashes.",
        _RECONVERT,
    ),
    "resource.unnamed": _warning("The one resource variable has no name.", _RECONVERT),
    # signatures and state
    "signature.other_subgraph": _warning(
        "A signature belongs to another subgraph than 0. TFLM runs subgraph 0 only.",
        "export the signature that you need as the model's main one",
    ),
    "signature.order": _info("A signature lists its inputs in another order than the model, whose order TFLM uses."),
    "model.stateful": _info("The model keeps state between runs: reset it before each comparison."),
    # offline plan
    "offline.length": _refused("The offline memory plan is shorter than its count; TFLM reads past its end.", _DAMAGED),
    "offline.count": _refused("The offline memory plan does not have one offset per tensor.", "plan it again"),
    "offline.version": _warning("The offline memory plan has an unknown version; TFLM does not look.", "plan it again"),
    "offline.offset": _refused("An offline offset is negative or larger than any arena.", "plan it again"),
    "offline.unaligned": _refused("An offline offset is not a multiple of 16.", "plan it again"),
    "offline.overlap": _refused("The offline plan puts two tensors that live together in one place.", "plan it again"),
}


def finding(code: str, where: str, message: str, remedy: str = "") -> Finding:
    """A finding of a known code, with its severity, and its remedy where none is given."""
    entry = CODES[code]
    return Finding(code, entry.severity, where, message, remedy or entry.remedy)


def codes_markdown() -> str:
    """The tables of docs/checks.md: ``python -m harness.model.codes``."""
    lines: list[str] = []
    for title, codes in (("Findings", CODES), ("Files that are no readable model", FILE_CODES)):
        lines += [f"## {title}", "", "| code | severity | meaning | what to do |", "|---|---|---|---|"]
        for code, entry in sorted(codes.items()):
            lines.append(f"| `{code}` | {entry.severity.value} | {entry.meaning} | {entry.remedy} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(codes_markdown(), end="")
