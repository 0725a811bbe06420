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
// What the interpreters of one arena have together.
class MicroAllocator {
 public:
  static MicroAllocator* Create(uint8_t* arena, size_t size);
  uint8_t* arena = nullptr;
  size_t size = 0;
  size_t head = 0;     // the largest of all
  size_t tail = 0;     // those of all
  size_t tensors = 0;  // of all
};
}  // namespace tflite
