// A fake: the categories add up to the tail, all in the first. See README.md.
#pragma once
#include "tensorflow/lite/micro/micro_interpreter.h"
namespace tflite {
enum class RecordedAllocationType { kTfLiteEvalTensorData };
struct RecordedAllocation {
  size_t requested_bytes;
  size_t used_bytes;
  size_t count;
};
struct RecordingSingleArenaBufferAllocator {
  size_t head;
  size_t tail;
  size_t GetUsedBytes() const { return head + tail; }
  size_t GetNonPersistentUsedBytes() const { return head; }
  size_t GetPersistentUsedBytes() const { return tail; }
};
class RecordingMicroAllocator : public MicroAllocator {
 public:
  static RecordingMicroAllocator* Create(uint8_t*, size_t) { return nullptr; }  // one model only: see README.md
  RecordedAllocation GetRecordedAllocation(RecordedAllocationType type) const {
    if (type != RecordedAllocationType::kTfLiteEvalTensorData) return {0, 0, 0};
    return {memory.tail, memory.tail, 1};
  }
  const RecordingSingleArenaBufferAllocator* GetSimpleMemoryAllocator() const { return &memory; }
  RecordingSingleArenaBufferAllocator memory;
};
class RecordingMicroInterpreter : public MicroInterpreter {
 public:
  using MicroInterpreter::MicroInterpreter;
  const RecordingMicroAllocator& GetMicroAllocator() const {
    allocator_.memory = {head_, tail_};
    return allocator_;
  }

 private:
  mutable RecordingMicroAllocator allocator_ = {};
};
}  // namespace tflite
