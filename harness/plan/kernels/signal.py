"""The Signal library's operators (signal/micro/kernels/*.cc, signal/src/*.cc)."""

from __future__ import annotations

import math

from harness.model.graph import TensorType
from harness.plan.kernels.flexbuffer import custom_options
from harness.plan.kernels.registry import register
from harness.plan.node import Node
from harness.plan.tensor import LiveTensor

_INT16, _INT32, _UINT32, _UINT64 = TensorType.INT16, TensorType.INT32, TensorType.UINT32, TensorType.UINT64
_FLOAT, _BOOL = TensorType.FLOAT32, TensorType.BOOL

#: Bytes of a kiss_fft_cpx by the element type of the transform.
_COMPLEX_BYTES = {_INT16: 4, _INT32: 8, _FLOAT: 8}
_SCALAR_BYTES = {_INT16: 2, _INT32: 4, _FLOAT: 4}


def _circular_buffer_bytes(node: Node, capacity: int) -> int:
    """CircularBufferGetNeededMemory, signal/src/circular_buffer.cc."""
    return node.abi.size("CircularBuffer") + 2 * 2 * capacity


def _fft_state_bytes(node: Node, fft_length: int, element: TensorType) -> int:
    """kiss_fftr_alloc, kissfft v130: the real transform's state, a complex state of half the length with a twiddle per
    point, and the super-twiddles and buffer of the real part."""
    half, complex_bytes = fft_length // 2, _COMPLEX_BYTES[element]
    complex_state = node.abi.size("kiss_fft_state") + complex_bytes * max(half, 1)
    return node.abi.size("kiss_fftr_state") + complex_state + complex_bytes * (half * 3 // 2)


def _fft_element(node: Node) -> TensorType:
    """Option ``T``: a value of the schema's TensorType."""
    value = custom_options(node).integer("T")
    node.ensure(value in (_INT16, _INT32, _FLOAT), f"transform type {value} is not INT16, INT32 or FLOAT32")
    return TensorType(value)


def _rfft_init(node: Node) -> None:
    node.persist_struct("signal_rfft::TfLiteAudioFrontendRfftParams")
    length = custom_options(node).integer("fft_length")
    node.persist(_fft_state_bytes(node, length, _fft_element(node)), "FFT state")


@register("SignalRfft", init=_rfft_init, custom=True)
def rfft(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=1)
    source, output = node.temp_input(0), node.temp_output()
    node.ensure(source.rank == output.rank, "NumDimensions(input) != NumDimensions(output)")
    element = _fft_element(node)
    _types(node, (source, element), (output, element))
    node.scratch(custom_options(node).integer("fft_length") * _SCALAR_BYTES[element], "input padded to the FFT length")


def _irfft_init(node: Node) -> None:
    node.persist_struct("signal_irfft::TfLiteAudioFrontendIrfftParams")
    length, element = custom_options(node).integer("fft_length"), _fft_element(node)
    # irfft_float.cc keeps the length and a pointer before the state: IrfftFloatState
    extra = 2 * node.abi.pointer_bytes if element == _FLOAT else 0
    node.persist(extra + _fft_state_bytes(node, length, element), "FFT state")


@register("SignalIrfft", init=_irfft_init, custom=True)
def irfft(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=1)
    source, output = node.temp_input(0), node.temp_output()
    node.ensure(source.rank == output.rank, "NumDimensions(input) != NumDimensions(output)")
    element = _fft_element(node)
    _types(node, (source, element), (output, element))


@register("SignalFftAutoScale", custom=True)
def fft_auto_scale(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=2)
    source, output, scale = node.temp_input(0), node.temp_output(0), node.temp_output(1)
    _ranks(node, (source, 1), (output, 1), (scale, 0))
    _types(node, (source, _INT16), (output, _INT16), (scale, _INT32))


@register("SignalEnergy", init="signal_energy::TFLMSignalEnergyParams", custom=True)
def energy(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=1)
    source, output = node.temp_input(0), node.temp_output()
    _ranks(node, (source, 1), (output, 1))
    _types(node, (source, _INT16), (output, _UINT32))


def _filter_bank_init(node: Node) -> None:
    node.persist_struct("signal_filter_bank::TFLMSignalFilterBankParams")
    node.persist(8 * (custom_options(node).integer("num_channels") + 1), "work area")


@register("SignalFilterBank", init=_filter_bank_init, custom=True)
def filter_bank(node: Node) -> None:
    node.ensure_counts(inputs=6, outputs=1)
    for index, element in enumerate((_UINT32, _INT16, _INT16, _INT16, _INT16, _INT16)):
        source = node.temp_input(index)
        _ranks(node, (source, 1))
        _types(node, (source, element))
    output = node.temp_output()
    _ranks(node, (output, 1))
    _types(node, (output, _UINT64))


@register("SignalFilterBankLog", init="signal_filter_bank_log::TFLMSignalLogParams", custom=True)
def filter_bank_log(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=1)
    source, output = node.temp_input(0), node.temp_output()
    _ranks(node, (source, 1), (output, 1))
    _types(node, (source, _UINT32), (output, _INT16))


@register("SignalFilterBankSquareRoot", custom=True)
def filter_bank_square_root(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    source, scale, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    _ranks(node, (source, 1), (scale, 0), (output, 1))
    _types(node, (source, _UINT64), (scale, _INT32), (output, _UINT32))


def _spectral_subtraction_init(node: Node) -> None:
    node.persist_struct("signal_filter_bank_spectral_subtraction::TFLMSignalSpectralSubtractionParams")
    node.persist(4 * custom_options(node).integer("num_channels"), "noise estimate")


@register("SignalFilterBankSpectralSubtraction", init=_spectral_subtraction_init, custom=True)
def spectral_subtraction(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=2)
    source, output, noise = node.temp_input(0), node.temp_output(0), node.temp_output(1)
    _ranks(node, (source, 1), (output, 1), (noise, 1))
    _types(node, (source, _UINT32), (output, _UINT32), (noise, _UINT32))


@register("SignalPCAN", init="signal_pcan::TfLitePcanParams", custom=True)
def pcan(node: Node) -> None:
    node.ensure_counts(inputs=3, outputs=1)
    source, noise, gain = (node.temp_input(index) for index in range(3))
    output = node.temp_output()
    _ranks(node, (source, 1), (noise, 1), (gain, 1), (output, 1))
    _types(node, (source, _UINT32), (noise, _UINT32), (gain, _INT16), (output, _UINT32))


@register("SignalWindow", init="signal_window::TFLMSignalWindowParams", custom=True)
def window(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    source, weights, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure(source.rank >= 1 and source.rank == output.rank, "NumDimensions(input) != NumDimensions(output)")
    _ranks(node, (weights, 1))
    _types(node, (source, _INT16), (weights, _INT16), (output, _INT16))


@register("SignalFramer", init="signal_framer::TFLMSignalFramerParams", custom=True)
def framer(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=2)
    source, output, valid = node.temp_input(0), node.temp_output(0), node.temp_output(1)
    node.ensure(source.rank + 1 == output.rank, "NumDimensions(input) + 1 != NumDimensions(output)")
    _ranks(node, (valid, 0))
    _types(node, (source, _INT16), (output, _INT16), (valid, _BOOL))
    options = custom_options(node)
    size, step = options.integer("frame_size"), options.integer("frame_step")
    inner = source.dims[-1] if source.dims else 0
    node.ensure(step > 0 and inner >= step, "innermost_dim >= params->frame_step was not true.")
    node.ensure(inner % step == 0, "innermost_dim % params->frame_step != 0")
    _circular_buffers(node, source.element_count // inner, (size + step - 1) // step * step)


@register("SignalDelay", init="signal_delay::TFLMSignalFrontendDelayParams", custom=True)
def delay(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=1)
    source, output = node.temp_input(0), node.temp_output()
    _types(node, (source, _INT16), (output, _INT16))
    inner = source.dims[-1] if source.dims else 0
    node.ensure(inner > 0, "the innermost dimension is 0")
    _circular_buffers(node, source.element_count // inner, inner + custom_options(node).integer("delay_length"))


def _circular_buffers(node: Node, count: int, capacity: int) -> None:
    node.persist(node.abi.pointer_bytes * count, "state pointers")
    node.persist(node.abi.pointer_bytes * count, "circular buffer pointers")
    for _ in range(count):
        node.persist(_circular_buffer_bytes(node, capacity), "circular buffer")


def _stacker_init(node: Node) -> None:
    node.persist_struct("signal_stacker::TFLMSignalStackerParams")
    options = custom_options(node)
    context = options.integer("stacker_left_context") + options.integer("stacker_right_context") + 1
    node.persist(_circular_buffer_bytes(node, options.integer("num_channels") * context), "circular buffer")


@register("SignalStacker", init=_stacker_init, custom=True)
def stacker(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=2)
    source, output, valid = node.temp_input(0), node.temp_output(0), node.temp_output(1)
    _ranks(node, (source, 1), (output, 1), (valid, 0))
    _types(node, (source, _INT16), (output, _INT16), (valid, _BOOL))


@register("SignalOverlapAdd", init="signal_overlap_add::TFLMSignalOverlapAddParams", custom=True)
def overlap_add(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=1)
    element = custom_options(node).integer("T")
    node.ensure(element in (_INT16, _FLOAT), f"overlap-add type {element} is not INT16 or FLOAT32")
    source, output = node.temp_input(0), node.temp_output()
    node.ensure(
        source.rank == output.rank + 1 and source.rank >= 2, "NumDimensions(input) != NumDimensions(output) + 1"
    )
    _types(node, (source, TensorType(element)), (output, TensorType(element)))
    frames, size = source.dims[-2:]
    outer = source.element_count // math.prod((frames, size)) if frames and size else 0
    node.persist(node.abi.pointer_bytes * outer, "state pointers")
    for _ in range(outer):
        node.persist(size * _SCALAR_BYTES[TensorType(element)], "state")


def _ranks(node: Node, *wanted: tuple[LiveTensor, int]) -> None:
    for tensor, rank in wanted:
        node.ensure(tensor.rank == rank, f"NumDimensions != {rank} ({tensor.rank} != {rank})")


def _types(node: Node, *wanted: tuple[LiveTensor, TensorType]) -> None:
    for tensor, element in wanted:
        node.ensure_type(tensor, element)
