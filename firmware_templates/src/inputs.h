// Where the model's inputs come from, and digests of its outputs: the arithmetic of harness/wire/generator.py.
#pragma once

#include <cstdint>

#include "wire.h"

namespace harness {

constexpr uint64_t kFnvOffset = 0xCBF29CE484222325u;
uint64_t fnv1a(const uint8_t* data, uint32_t size, uint64_t value = kFnvOffset);

// Whether the spare RAM holds all inputs at once.
bool can_stage_inputs();

// False for an index or kind that this image has not.
bool set_input(const SetInput& request);

// One chunk of a staged input; false when it does not follow on the last one or does not fit.
bool stage_input(const WriteInput& request, InputWritten* answer);

// Writes input `index` of `size` bytes, as its spec says. `type` is a TfLiteType (TensorType of the schema for those that
// can be generated). False when the spec does not fit the tensor.
bool fill_input(uint8_t index, int type, uint8_t* data, uint32_t size);

}  // namespace harness
