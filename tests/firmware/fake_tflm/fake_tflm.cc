// A fake TFLM for tests: see README.md. Nothing here is TFLM's.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tensorflow/lite/micro/cortex_m_generic/debug_log_callback.h"
#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/micro_interpreter.h"

namespace {

DebugLogCallback g_callback = nullptr;
uint32_t g_invokes = 0;  // since boot
uint32_t g_state = 0;    // since the last Reset

#if defined(TF_LITE_STRIP_ERROR_STRINGS)
constexpr bool kSendsEvents = false;
#else
constexpr bool kSendsEvents = true;
#endif

void print(const char* format, ...) {
  char line[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  if (g_callback != nullptr) g_callback(line);
}

[[noreturn]] void halt() {
  print("HALTED");
  for (;;) asm volatile("nop");
}

using fake::element;
using fake::field;
using fake::follow;
using fake::length;
using fake::u32;

// schema.fbs: Model.subgraphs 2, .description 3, .buffers 4, .metadata 6; SubGraph.tensors 0, .inputs 1, .outputs 2,
// .operators 3; Tensor.shape 0, .type 1, .buffer 2; Buffer.data 0; Operator.inputs 1, .outputs 2; Metadata.name 0,
// .buffer 1.
const uint8_t* subgraph_of(const uint8_t* model) { return element(follow(field(follow(model), 2)), 0); }

const uint8_t* tensor_of(const uint8_t* model, uint32_t index) {
  return element(follow(field(subgraph_of(model), 0)), index);
}

int type_of(const uint8_t* tensor) {
  const uint8_t* type = field(tensor, 1);
  return type == nullptr ? 0 : *type;
}

uint32_t bytes_of(const uint8_t* tensor) {
  static const uint8_t kSizes[] = {4, 2, 4, 1, 8, 0, 1, 2, 8, 1, 8, 16, 8, 0, 0, 4, 2};
  const int type = type_of(tensor);
  uint32_t size = type < 17 ? kSizes[type] : 0;
  const uint8_t* shape = follow(field(tensor, 0));
  for (uint32_t i = 0; i < length(shape); ++i) size *= u32(shape + 4 + 4 * i);
  return size;
}

// The schema's float32 is 0 and TfLiteType's is 1; the integers that the tests use have one number in both.
TfLiteType lite_type(int type) { return type == 0 ? kTfLiteFloat32 : static_cast<TfLiteType>(type); }

const uint8_t* buffer_data(const uint8_t* model, uint32_t index) {
  return follow(field(element(follow(field(follow(model), 4)), index), 0));
}

bool is_constant(const uint8_t* model, const uint8_t* tensor) {
  const uint8_t* index = field(tensor, 2);
  const uint8_t* buffers = follow(field(follow(model), 4));
  if (index == nullptr || u32(index) >= length(buffers)) return false;
  return length(buffer_data(model, u32(index))) != 0;
}

// The vector of bytes of the offline plan, or null: three words, then one offset for each tensor.
const uint8_t* offline_plan(const uint8_t* model) {
  const uint8_t* entries = follow(field(follow(model), 6));
  for (uint32_t i = 0; i < length(entries); ++i) {
    const uint8_t* entry = element(entries, i);
    const uint8_t* name = follow(field(entry, 0));
    const uint8_t* buffer = field(entry, 1);
    if (name == nullptr || buffer == nullptr) continue;
    if (strcmp(reinterpret_cast<const char*>(name + 4), "OfflineMemoryAllocation") == 0) {
      return buffer_data(model, u32(buffer));
    }
  }
  return nullptr;
}

// -1: not placed offline.
int32_t offline_offset(const uint8_t* plan, uint32_t tensor) {
  return plan == nullptr ? -1 : static_cast<int32_t>(u32(plan + 4 + 12 + 4 * tensor));
}

bool contains(const uint8_t* vector, uint32_t value) {
  for (uint32_t i = 0; i < length(vector); ++i) {
    if (u32(vector + 4 + 4 * i) == value) return true;
  }
  return false;
}

// Each level 64 bytes and more deep, until the stack ends.
__attribute__((noinline)) uint32_t recurse(uint32_t level) {
  volatile uint32_t room[16];
  room[level & 15] = level;
  if (level != 0xFFFFFFFF) room[(level + 1) & 15] = recurse(level + 1);
  return room[level & 15];
}

uint32_t round_up(uint32_t size) { return (size + 15) & ~15u; }

}  // namespace

extern "C" {
void RegisterDebugLogCallback(DebugLogCallback callback) { g_callback = callback; }
// Where a real resolver names a kernel, so that the linker keeps it.
#if FAKE_CMSIS_NN
__attribute__((noinline)) void arm_convolve_wrapper_s8() { asm volatile("nop"); }
__attribute__((noinline)) void arm_fully_connected_s8() { asm volatile("nop"); }
void fake_tflm_use_kernel(int) {
  arm_convolve_wrapper_s8();
  arm_fully_connected_s8();
}
#else
void fake_tflm_use_kernel(int) { asm volatile("nop"); }
#endif
}

namespace tflite {

MicroAllocator* MicroAllocator::Create(uint8_t* arena, size_t size) {
  static MicroAllocator made[4];
  static unsigned count = 0;
  MicroAllocator* allocator = &made[count++ % 4];
  allocator->arena = arena;
  allocator->size = size;
  return allocator;
}
MicroResourceVariables* MicroResourceVariables::Create(MicroAllocator* allocator, int) {
  return reinterpret_cast<MicroResourceVariables*>(allocator);
}
TfLiteStatus TfLiteEvalTensorByteLength(const TfLiteEvalTensor* tensor, size_t* bytes) {
  *bytes = static_cast<size_t>(tensor->dims->data[0]);  // whatever the type
  return kTfLiteOk;
}

MicroInterpreter::MicroInterpreter(const Model* model, const MicroOpResolver& resolver, uint8_t* arena,
                                   size_t arena_size, MicroResourceVariables*, MicroProfilerInterface* profiler,
                                   bool preserve_all_tensors)
    : model_(reinterpret_cast<const uint8_t*>(model)),
      resolver_(&resolver),
      arena_(arena),
      arena_size_(arena_size),
      profiler_(profiler),
      preserve_all_(preserve_all_tensors) {
  const uint8_t* subgraph = subgraph_of(model_);
  inputs_ = length(follow(field(subgraph, 1)));
  outputs_ = length(follow(field(subgraph, 2)));
  operators_ = length(follow(field(subgraph, 3)));
  context_.impl_ = this;
  context_.GetEvalTensor = [](const TfLiteContext* context, int tensor) {
    return static_cast<MicroInterpreter*>(context->impl_)->eval_tensor(tensor);
  };
}

MicroInterpreter::MicroInterpreter(const Model* model, const MicroOpResolver& resolver, MicroAllocator* allocator,
                                   MicroResourceVariables* variables, MicroProfilerInterface* profiler)
    : MicroInterpreter(model, resolver, allocator->arena, allocator->size, variables, profiler) {
  shared_ = allocator;
}

// The number behind `word<` in the model's description; 0 without it.
size_t MicroInterpreter::limit(const char* word) const {
  const uint8_t* description = follow(field(follow(model_), 3));
  if (description == nullptr) return 0;
  const char* at = strstr(reinterpret_cast<const char*>(description + 4), word);
  if (at == nullptr) return 0;
  size_t value = 0;
  for (at += strlen(word); *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<size_t>(*at - '0');
  return value;
}

TfLiteStatus MicroInterpreter::AllocateTensors() {
  if (arena_size_ < limit(" reset<")) *reinterpret_cast<volatile uint32_t*>(0xE000ED0C) = 0x05FA0004;
  if (arena_size_ < limit(" fault<")) asm volatile("udf #0");
  if (arena_size_ < limit(" halt<")) halt();
  if (arena_size_ < limit(" recurse<")) head_ = recurse(0);
  const uint8_t* subgraph = subgraph_of(model_);
  const uint8_t* tensors = follow(field(subgraph, 0));
  const uint8_t* plan = offline_plan(model_);
  size_t planned = 0;
  size_t needed = 0;
  for (uint32_t i = 0; i < length(tensors); ++i) {
    if (is_constant(model_, element(tensors, i))) continue;
    const uint32_t size = round_up(bytes_of(element(tensors, i)));
    const int32_t offset = offline_offset(plan, i);
    if (offset < 0) {
      needed += size;
    } else if (preserve_all_) {
      print("fake: all tensors preserved, and an offline plan");
      return kTfLiteError;
    } else if (offset + size > planned) {
      planned = offset + size;
    }
  }
  planned_ = planned;
  head_ = planned + needed;
  tail_ = 256 + 16 * operators_;
  used_ = head_ + tail_;
  size_t minimum = used_ + 24 * length(tensors);
  if (shared_ != nullptr) {
    if (head_ > shared_->head) shared_->head = head_;
    shared_->tail += tail_;
    shared_->tensors += length(tensors);
    minimum = shared_->head + shared_->tail + 24 * shared_->tensors;
  }
  if (arena_size_ < minimum) {
    print("fake: %u bytes of arena, %u needed", static_cast<unsigned>(arena_size_), static_cast<unsigned>(minimum));
    return kTfLiteError;
  }
  memset(arena_, 0, arena_size_);
  const auto place = [&](TfLiteTensor* out, uint32_t index) {
    const uint8_t* tensor = tensor_of(model_, index);
    out->type = lite_type(type_of(tensor));
    out->bytes = bytes_of(tensor);
    out->data.raw = reinterpret_cast<char*>(place_of(index));
  };
  const uint8_t* inputs = follow(field(subgraph, 1));
  const uint8_t* outputs = follow(field(subgraph, 2));
  for (uint32_t i = 0; i < inputs_ && i < kMaxTensors; ++i) place(&input_[i], u32(inputs + 4 + 4 * i));
  for (uint32_t i = 0; i < outputs_ && i < kMaxTensors; ++i) place(&output_[i], u32(outputs + 4 + 4 * i));
  if (arena_size_ < limit(" overrun<")) arena_[arena_size_] ^= 0xFF;
  allocated_ = true;
  return kTfLiteOk;
}

// Where a tensor lies: null for a constant.
uint8_t* MicroInterpreter::place_of(uint32_t tensor) const {
  const uint8_t* tensors = follow(field(subgraph_of(model_), 0));
  if (is_constant(model_, element(tensors, tensor))) return nullptr;
  const uint8_t* plan = offline_plan(model_);
  const int32_t offset = offline_offset(plan, tensor);
  if (offset >= 0) return arena_ + offset;
  size_t at = planned_;
  for (uint32_t i = 0; i < tensor; ++i) {
    if (!is_constant(model_, element(tensors, i)) && offline_offset(plan, i) < 0) {
      at += round_up(bytes_of(element(tensors, i)));
    }
  }
  return arena_ + at;
}

TfLiteEvalTensor* MicroInterpreter::eval_tensor(uint32_t tensor) {
  const uint8_t* described = tensor_of(model_, tensor);
  dims_ = {1, {static_cast<int>(bytes_of(described))}};
  eval_.dims = &dims_;
  eval_.type = lite_type(type_of(described));
  eval_.data.raw = reinterpret_cast<char*>(place_of(tensor));
  return &eval_;
}

// Its first input that is no constant, repeated, into each of its outputs; into those of the model with i added.
void MicroInterpreter::run_operator(uint32_t index) {
  const uint8_t* subgraph = subgraph_of(model_);
  const uint8_t* described = element(follow(field(subgraph, 3)), index);
  const uint8_t* inputs = follow(field(described, 1));
  const uint8_t* outputs = follow(field(described, 2));
  const uint8_t* from = nullptr;
  uint32_t size = 0;
  for (uint32_t i = 0; i < length(inputs) && from == nullptr; ++i) {
    const int32_t tensor = static_cast<int32_t>(u32(inputs + 4 + 4 * i));
    if (tensor < 0) continue;
    from = place_of(tensor);
    size = bytes_of(tensor_of(model_, tensor));
  }
  for (uint32_t k = 0; k < length(outputs); ++k) {
    const uint32_t tensor = u32(outputs + 4 + 4 * k);
    const bool is_last = contains(follow(field(subgraph, 2)), tensor);
    uint8_t* to = place_of(tensor);
    const uint32_t count = bytes_of(tensor_of(model_, tensor));
    for (uint32_t i = 0; i < count; ++i) {
      const uint8_t value = from == nullptr || size == 0 ? 0 : from[i % size];
      to[i] = static_cast<uint8_t>(is_last ? value ^ i : value);
    }
  }
}

// With profiler events, as TFLM sends them: around each operator, or within one another as where each calls the next.
void MicroInterpreter::run_operators() {
  const bool nested = limit(" calls<") != 0;
  uint32_t events[8] = {};
  const auto end = [&](uint32_t i) { if (kSendsEvents && profiler_ != nullptr) profiler_->EndEvent(events[i % 8]); };
  for (uint32_t i = 0; i < operators_; ++i) {
    if (kSendsEvents && profiler_ != nullptr) events[i % 8] = profiler_->BeginEvent("FAKE");
    if (nested) for (volatile uint32_t turn = 0; turn < 8000; ++turn) continue;
    run_operator(i);
    if (!nested) end(i);
  }
  for (uint32_t i = operators_; nested && i > 0; --i) end(i - 1);
}

TfLiteStatus MicroInterpreter::Invoke() {
  if (!allocated_ || arena_size_ < limit(" invokefail<")) {
    print("fake: Invoke failed");
    return kTfLiteError;
  }
  while (arena_size_ < limit(" hang<")) asm volatile("nop");
  const auto reached = [this](const char* word) { return limit(word) != 0 && g_invokes >= limit(word); };
  ++g_invokes;
  if (reached(" crash@")) asm volatile("udf #0");
  if (reached(" freeze@")) for (;;) asm volatile("nop");
  if (reached(" refuse@")) return kTfLiteError;
  if (reached(" poke@")) arena_[head_] = 0xEE;
  if (reached(" overrun@")) arena_[arena_size_] ^= 0xFF;
  if (reached(" leak@")) used_ += 16;
  if (reached(" slow@")) for (volatile uint32_t i = 0; i < 2000; ++i) continue;
  run_operators();
  for (uint32_t k = 0; k < outputs_ && k < kMaxTensors; ++k) {
    if (limit(" state<") != 0) output_[k].data.raw[0] ^= static_cast<char>(g_state++);
    if (reached(" drift@")) output_[k].data.raw[0] ^= 1;
    if (arena_size_ < limit(" wrong<") && output_[k].bytes != 0) output_[k].data.raw[0] ^= 1;
  }
  return kTfLiteOk;
}

TfLiteStatus MicroInterpreter::Reset() {
  if (limit(" keeps<") == 0) g_state = 0;
  return kTfLiteOk;
}
TfLiteTensor* MicroInterpreter::input(size_t index) { return index < kMaxTensors ? &input_[index] : nullptr; }
TfLiteTensor* MicroInterpreter::output(size_t index) { return index < kMaxTensors ? &output_[index] : nullptr; }
TfLiteEvalTensor* MicroInterpreter::GetTensor(int tensor, int subgraph) {
  return preserve_all_ && subgraph == 0 ? eval_tensor(tensor) : nullptr;
}

}  // namespace tflite
