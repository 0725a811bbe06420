// A fake. See README.md.
#pragma once
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_op_resolver.h"
#include "tensorflow/lite/micro/micro_profiler_interface.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"
namespace tflite {
struct MicroInterpreterGraph {
  void* context;
};
struct MicroInterpreterContext {
  void* context;
};
class MicroInterpreter {
 public:
  static constexpr int kMaxTensors = 8;  // inputs and outputs, each
  MicroInterpreter(const Model* model, const MicroOpResolver& resolver, uint8_t* arena, size_t arena_size,
                   MicroResourceVariables* variables = nullptr, MicroProfilerInterface* profiler = nullptr,
                   bool preserve_all_tensors = false);
  MicroInterpreter(const Model* model, const MicroOpResolver& resolver, MicroAllocator* allocator,
                   MicroResourceVariables* variables = nullptr, MicroProfilerInterface* profiler = nullptr);
  TfLiteStatus AllocateTensors();
  TfLiteStatus Invoke();
  TfLiteStatus Reset();
  TfLiteTensor* input(size_t index);
  TfLiteTensor* output(size_t index);
  size_t inputs_size() const { return inputs_; }
  size_t outputs_size() const { return outputs_; }
  size_t arena_used_bytes() const { return shared_ != nullptr ? shared_->head + shared_->tail : used_; }
  TfLiteEvalTensor* GetTensor(int tensor, int subgraph);

 protected:
  const TfLiteContext& context() const { return context_; }
  size_t head_ = 0;
  size_t tail_ = 0;

 private:
  size_t limit(const char* word) const;
  uint8_t* place_of(uint32_t tensor) const;
  TfLiteEvalTensor* eval_tensor(uint32_t tensor);
  void run_operator(uint32_t index);
  void run_operators();
  const uint8_t* model_;
  const MicroOpResolver* resolver_;
  MicroAllocator* shared_ = nullptr;  // null: the arena is this interpreter's alone
  uint8_t* arena_;
  size_t arena_size_;
  MicroProfilerInterface* profiler_;
  bool preserve_all_;
  bool allocated_ = false;
  size_t inputs_ = 0;
  size_t outputs_ = 0;
  size_t used_ = 0;
  size_t operators_ = 0;
  TfLiteTensor input_[kMaxTensors] = {};
  TfLiteTensor output_[kMaxTensors] = {};
  size_t planned_ = 0;  // of the head, for the tensors that the offline plan places
  TfLiteEvalTensor eval_ = {};
  TfLiteIntArray dims_ = {};
  TfLiteContext context_ = {};
};
}  // namespace tflite
