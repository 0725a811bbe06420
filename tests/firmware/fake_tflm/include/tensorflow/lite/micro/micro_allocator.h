// A fake. See README.md.
#pragma once
#include "tensorflow/lite/c/common.h"
namespace tflite {
struct NodeAndRegistration {
  TfLiteNode node;
  const TFLMRegistration* registration;
};
struct SubgraphAllocations {
  NodeAndRegistration* node_and_registrations;
  TfLiteEvalTensor* tensors;
};
struct ScratchBufferHandle {
  uint8_t* data;
};
class MicroAllocator {
 public:
  static MicroAllocator* Create(uint8_t* arena, size_t size);
};
}  // namespace tflite
