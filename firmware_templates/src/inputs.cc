#include "inputs.h"

#include <cstring>

#include "link_symbols.h"
#include "model.h"

namespace harness {
namespace {

constexpr uint8_t kMaxInputs = 16;  // specs kept one by one; further inputs share the last one

struct Spec {
  InputKind kind;
  uint8_t element_bytes;
  uint64_t value;
};

Spec g_specs[kMaxInputs];
uint32_t g_staged_bytes[kMaxInputs];

Spec& spec_of(uint8_t index) { return g_specs[index < kMaxInputs ? index : kMaxInputs - 1]; }

uint32_t spare_bytes() { return static_cast<uint32_t>(__spare_end - __spare_start); }

// Where a staged input lies: inputs follow one another, each 16-aligned.
uint32_t staged_offset(uint8_t index) {
  uint32_t offset = 0;
  for (uint8_t i = 0; i < index; ++i) offset += (kInputBytes[i] + 15) & ~15u;
  return offset;
}

class Splitmix {
 public:
  Splitmix(uint64_t seed, uint32_t index) : state_(seed + (index + 1u) * 0xD1B54A32D192ED03u) {}
  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = (state_ ^ (state_ >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

// Values of TfLiteType (tensorflow/compiler/mlir/lite/core/c/tflite_types.h), which are not those of the schema.
enum Type { kFloat32 = 1, kInt32 = 2, kUint8 = 3, kInt64 = 4, kBool = 6, kInt16 = 7, kInt8 = 9, kUint32 = 16, kUint16 = 17 };

bool generate(uint64_t seed, uint8_t index, int type, uint8_t* data, uint32_t size) {
  Splitmix random(seed, index);
  switch (type) {
    case kInt8:
    case kUint8:
      for (uint32_t i = 0; i < size; ++i) data[i] = static_cast<uint8_t>(random.next());
      return true;
    case kInt16:
    case kUint16:
      for (uint32_t i = 0; i + 2 <= size; i += 2) {
        const uint16_t value = static_cast<uint16_t>(random.next());
        memcpy(data + i, &value, 2);
      }
      return true;
    case kFloat32:
      for (uint32_t i = 0; i + 4 <= size; i += 4) {
        const int32_t steps = static_cast<int32_t>(random.next() >> 40) - (1 << 23);
        const float value = static_cast<float>(steps) / static_cast<float>(1 << 23);
        memcpy(data + i, &value, 4);
      }
      return true;
    case kInt32:
    case kUint32:
    case kInt64:
    case kBool: {
      const uint32_t element = type == kBool ? 1 : type == kInt64 ? 8 : 4;
      for (uint32_t i = 0; i + element <= size; i += element) {
        const uint64_t value = random.next() & 1u;
        memcpy(data + i, &value, element);
      }
      return true;
    }
    default:
      return false;
  }
}

bool fill_pattern(const Spec& spec, uint8_t* data, uint32_t size) {
  if (spec.element_bytes == 0 || spec.element_bytes > 8 || size % spec.element_bytes != 0) return false;
  for (uint32_t i = 0; i < size; i += spec.element_bytes) memcpy(data + i, &spec.value, spec.element_bytes);
  return true;
}

}  // namespace

uint64_t fnv1a(const uint8_t* data, uint32_t size, uint64_t value) {
  for (uint32_t i = 0; i < size; ++i) value = (value ^ data[i]) * 0x100000001B3u;
  return value;
}

bool can_stage_inputs() { return kInputCount <= kMaxInputs && staged_offset(kInputCount) <= spare_bytes(); }

bool set_input(const SetInput& request) {
  if (request.kind > InputKind::kBaked) return false;
  if (request.index != kAllInputs && request.index >= kInputCount) return false;
  if (request.kind == InputKind::kStaged && !can_stage_inputs()) return false;
  for (uint8_t i = 0; i < kInputCount; ++i) {
    if (request.index != kAllInputs && request.index != i) continue;
    if (request.kind == InputKind::kBaked && kBakedInputs[i].data == nullptr) return false;
    spec_of(i) = Spec{request.kind, request.element_bytes, request.value};
  }
  return true;
}

bool stage_input(const WriteInput& request, InputWritten* answer) {
  if (request.index >= kInputCount || !can_stage_inputs()) return false;
  uint32_t& staged = g_staged_bytes[request.index];
  if (request.offset == 0) staged = 0;  // begins anew
  if (request.offset != staged || request.offset + request.data_count > kInputBytes[request.index]) return false;
  uint8_t* const base = __spare_start + staged_offset(request.index);
  memcpy(base + staged, request.data, request.data_count);
  staged += request.data_count;
  *answer = InputWritten{request.index, staged, fnv1a(base, staged)};
  return true;
}

bool fill_input(uint8_t index, int type, uint8_t* data, uint32_t size) {
  const Spec& spec = spec_of(index);
  switch (spec.kind) {
    case InputKind::kZero:
      memset(data, 0, size);
      return true;
    case InputKind::kSeed:
      return generate(spec.value, index, type, data, size);
    case InputKind::kPattern:
      return fill_pattern(spec, data, size);
    case InputKind::kStaged:
      if (size != kInputBytes[index] || index >= kMaxInputs || g_staged_bytes[index] != size) return false;
      memcpy(data, __spare_start + staged_offset(index), size);
      return true;
    case InputKind::kBaked:
      if (size != kBakedInputs[index].size) return false;
      memcpy(data, kBakedInputs[index].data, size);
      return true;
    default:
      return false;
  }
}

}  // namespace harness
