// The models in flash, and what Python already knows of them: one, or several that share the arena.
#pragma once

#include <cstdint>

#include "tensorflow/lite/micro/micro_op_resolver.h"

extern "C" {
// 16-aligned: TFLM reads the flatbuffer in place (model.S).
alignas(16) extern const uint8_t g_model[];
extern const uint8_t g_model_end[];
}

namespace harness {

struct BakedInput {
  const uint8_t* data;
  uint32_t size;
};

constexpr uint32_t kUnknownSize = 0;

// Rendered: model_info.cc. Inputs and outputs are numbered through all models, in their order.
extern const uint8_t* const kModels[];    // per model, in the order of their setup
extern const uint8_t kInputCount;
extern const uint8_t kOutputCount;
extern const uint32_t kInputBytes[];      // per input
extern const BakedInput kBakedInputs[];   // per input; no data: none baked
extern const uint16_t kSubgraphCount;     // of the first model
extern const uint16_t kTensorCounts[];    // per subgraph of the first model

// The operators of all subgraphs, each once. Every Add… status is checked: null when one failed, with its line logged.
const tflite::MicroOpResolver* make_op_resolver();

}  // namespace harness
