#include "session.h"

#include <new>

#include "arena.h"
#include "build_info.h"
#include "board.h"
#include "cycles.h"
#include "faults.h"
#include "inputs.h"
#include "log.h"
#include "model.h"
#include "profiler.h"
#include "stack.h"
#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/schema/schema_generated.h"
#if HARNESS_INTERPRETER == 1
#include "tensorflow/lite/micro/recording_micro_interpreter.h"
#endif
#if HARNESS_RESOURCE_VARIABLES > 0 || HARNESS_MODELS > 1
#include "tensorflow/lite/micro/micro_allocator.h"
#endif
#if HARNESS_RESOURCE_VARIABLES > 0
#include "tensorflow/lite/micro/micro_resource_variable.h"
#endif

namespace harness {
namespace {

#if HARNESS_INTERPRETER == 1
using TflmInterpreter = tflite::RecordingMicroInterpreter;
#else
using TflmInterpreter = tflite::MicroInterpreter;
#endif

class Interpreter : public TflmInterpreter {
 public:
  using TflmInterpreter::TflmInterpreter;

  // A tensor of the subgraph that runs, the main one between operators. GetTensor() is for preserved tensors only.
  const TfLiteEvalTensor* present_tensor(int index) const {
    return this->context().GetEvalTensor(&this->context(), index);
  }
};
#if HARNESS_INTERPRETER == 2 && HARNESS_MODELS > 1
#error "TFLM's linear planner gives the second model the first one's offsets"
#endif

constexpr uint16_t kSamples = 64;

constexpr uint8_t kModelCount = HARNESS_MODELS;

alignas(Interpreter) uint8_t g_interpreter_storage[kModelCount][sizeof(Interpreter)];
Interpreter* g_interpreters[kModelCount];  // in the order of their setup
uint8_t g_present = 0;                     // the model that ran last: its inputs and outputs are in the arena
EventProfiler g_profiler;

uint16_t g_watched = 0;  // the tensor of a trace

enum class Outcome : uint8_t { kNone, kFailed, kWorked };
Outcome g_outcome = Outcome::kNone;
uint32_t g_arena_bytes = 0;

uint64_t g_samples[kSamples];
uint16_t g_sample_count = 0;
uint64_t g_profiled_cycles = 0;

#if HARNESS_RESOURCE_VARIABLES > 0
// Apart from the arena under test, as applications do it: only the variables' buffers are in the arena.
alignas(16) uint8_t g_resource_arena[kModelCount][512 + 32 * HARNESS_RESOURCE_VARIABLES];

tflite::MicroResourceVariables* make_resource_variables(uint8_t model) {
  tflite::MicroAllocator* allocator =
      tflite::MicroAllocator::Create(g_resource_arena[model], sizeof(g_resource_arena[model]));
  return tflite::MicroResourceVariables::Create(allocator, HARNESS_RESOURCE_VARIABLES);
}
#else
tflite::MicroResourceVariables* make_resource_variables(uint8_t) { return nullptr; }
#endif

#if HARNESS_MODELS == 1
void construct_all(const tflite::MicroOpResolver& resolver, uint32_t arena_bytes) {
  const tflite::Model* model = tflite::GetModel(kModels[0]);
  tflite::MicroResourceVariables* variables = make_resource_variables(0);
#if HARNESS_INTERPRETER == 1
  g_interpreters[0] =
      new (g_interpreter_storage[0]) Interpreter(model, resolver, kArenaBase, arena_bytes, variables, &g_profiler);
#else
  g_interpreters[0] = new (g_interpreter_storage[0])
      Interpreter(model, resolver, kArenaBase, arena_bytes, variables, &g_profiler, HARNESS_INTERPRETER == 2);
#endif
}
#else
#if HARNESS_INTERPRETER == 1
using Allocator = tflite::RecordingMicroAllocator;
#else
using Allocator = tflite::MicroAllocator;
#endif

// One allocator for all: the tails add up, and the head is the largest one.
void construct_all(const tflite::MicroOpResolver& resolver, uint32_t arena_bytes) {
  Allocator* allocator = Allocator::Create(kArenaBase, arena_bytes);
  for (uint8_t m = 0; m < kModelCount; ++m) {
    g_interpreters[m] = new (g_interpreter_storage[m])
        Interpreter(tflite::GetModel(kModels[m]), resolver, allocator, make_resource_variables(m), &g_profiler);
  }
}
#endif

bool allocate_all() {
  for (Interpreter* interpreter : g_interpreters) {
    if (interpreter->AllocateTensors() != kTfLiteOk) return false;
  }
  return true;
}

bool set_inputs(uint8_t model) {
  enter_stage(Stage::kInput);
  uint8_t first = 0;
  for (uint8_t m = 0; m < model; ++m) first = static_cast<uint8_t>(first + g_interpreters[m]->inputs_size());
  Interpreter* interpreter = g_interpreters[model];
  for (uint8_t i = 0; i < interpreter->inputs_size(); ++i) {
    TfLiteTensor* tensor = interpreter->input(i);
    if (tensor == nullptr || tensor->data.raw == nullptr) return false;
    uint8_t* const data = reinterpret_cast<uint8_t*>(tensor->data.raw);
    if (!fill_input(static_cast<uint8_t>(first + i), tensor->type, data, tensor->bytes)) return false;
  }
  return true;
}

uint64_t digest_outputs(uint8_t model, uint64_t digest) {
  Interpreter* interpreter = g_interpreters[model];
  for (uint8_t i = 0; i < interpreter->outputs_size(); ++i) {
    const TfLiteTensor* tensor = interpreter->output(i);
    if (tensor == nullptr || tensor->data.raw == nullptr) continue;
    digest = fnv1a(reinterpret_cast<const uint8_t*>(tensor->data.raw), tensor->bytes, digest);
  }
  return digest;
}

bool timed_invoke(uint8_t model, uint64_t* taken) {
  g_present = model;
  watch(static_cast<uint64_t>(kWatchdogSeconds) * kCoreHz);
  restart_tick();
  const uint64_t begin = cycles();
  const TfLiteStatus status = g_interpreters[model]->Invoke();
  *taken = cycles() - begin;
  watch(0);
  return status == kTfLiteOk;
}

enum class Ran : uint8_t { kAll, kWithoutInputs, kFailed };

void tell_nobody(Stage) {}

// Every model once, in order. Its inputs are set just before, its outputs digested just after: the others' activations
// lie in the same bytes. `taken` is the sum of the Invokes, `digest` that of all outputs in order.
Ran run_models(Stage stage, void (*working)(Stage), uint64_t* taken, uint64_t* digest) {
  *taken = 0;
  *digest = kFnvOffset;
  for (uint8_t m = 0; m < kModelCount; ++m) {
    if (!set_inputs(m)) return Ran::kWithoutInputs;
    enter_stage(stage);
    working(stage);
    uint64_t one = 0;
    const bool ok = timed_invoke(m, &one);
    *taken += one;
    if (!ok) return Ran::kFailed;
    enter_stage(Stage::kCheck);
    *digest = digest_outputs(m, *digest);
  }
  return Ran::kAll;
}

// Bring the model's outputs back into the arena, from the state that the trial began with, where another ran since.
bool make_present(uint8_t model) {
  if (g_present == model) return true;
  uint64_t taken = 0;
  const bool ok = g_interpreters[model]->Reset() == kTfLiteOk && set_inputs(model) && timed_invoke(model, &taken);
  enter_stage(Stage::kReady);
  return ok;
}

uint64_t digest_tensor(const TfLiteEvalTensor* eval, uint64_t digest) {
  size_t bytes = 0;
  if (eval == nullptr || eval->data.data == nullptr || eval->dims == nullptr ||
      tflite::TfLiteEvalTensorByteLength(eval, &bytes) != kTfLiteOk) {
    return digest;
  }
  return fnv1a(static_cast<const uint8_t*>(eval->data.data), bytes, digest);
}

// When an operator of the main subgraph has ended. By iterators: each Get() would bring the words of an assertion.
uint64_t digest_after(uint16_t operator_index) {
  const Interpreter& interpreter = *g_interpreters[0];
  uint64_t digest = kFnvOffset;
  if (g_watched != kOwnOutputs) return digest_tensor(interpreter.present_tensor(g_watched), digest);
  const tflite::SubGraph* main = *tflite::GetModel(kModels[0])->subgraphs()->begin();
  const auto* outputs = (*(main->operators()->begin() + operator_index))->outputs();
  if (outputs == nullptr) return digest;
  for (const int32_t tensor : *outputs) digest = digest_tensor(interpreter.present_tensor(tensor), digest);
  return digest;
}

GuardState check_guards(uint32_t* offset) {
  int32_t bad = 0;
  if (guards_intact(g_arena_bytes, &bad)) return GuardState::kIntact;
  *offset = static_cast<uint32_t>(bad);
  return GuardState::kOverrun;
}

// Steps of a trial, each setting what it learned. Returns the status that ends it.
TrialStatus carry_out(const TrialRequest& request, void (*working)(Stage), TrialReport* report) {
  const auto enter = [working](Stage stage) {
    enter_stage(stage);
    working(stage);
  };
  enter(Stage::kConstruct);
  const tflite::MicroOpResolver* resolver = make_op_resolver();
  if (resolver == nullptr) return TrialStatus::kResolverFailed;
  prepare_arena(request.arena_bytes);
  watch(static_cast<uint64_t>(kWatchdogSeconds) * kCoreHz);
  construct_all(*resolver, request.arena_bytes);

  enter(Stage::kAllocate);
  const uint64_t begin = cycles();
  const bool allocated = allocate_all();
  report->allocate_cycles = cycles() - begin;
  watch(0);
  if (!allocated) return TrialStatus::kAllocFailed;
  report->used_bytes = g_interpreters[0]->arena_used_bytes();  // of the allocator, which all models share
#if HARNESS_INTERPRETER == 1
  const auto* memory = g_interpreters[0]->GetMicroAllocator().GetSimpleMemoryAllocator();
  report->head_bytes = memory->GetNonPersistentUsedBytes();
  report->tail_bytes = memory->GetPersistentUsedBytes();
#endif
  if (request.invoke == 0) return TrialStatus::kOk;

  uint64_t digest = 0;
  switch (run_models(Stage::kInvoke, working, &report->invoke_cycles, &digest)) {
    case Ran::kWithoutInputs:
      return TrialStatus::kInputFailed;
    case Ran::kFailed:
      return TrialStatus::kInvokeFailed;
    case Ran::kAll:
      break;
  }
  report->output_digest = digest;
  return TrialStatus::kOk;
}

}  // namespace

bool trial_done() { return g_outcome != Outcome::kNone; }
bool trial_worked() { return g_outcome == Outcome::kWorked; }

TrialReport run_trial(const TrialRequest& request, void (*working)(Stage)) {
  static char detail[120];
  TrialReport report = {};
  report.arena_bytes = request.arena_bytes;
  report.used_bytes = report.head_bytes = report.tail_bytes = kUnknownU32;
  report.detail = detail;
  if (request.arena_bytes > kArenaCapacity) {
    report.status = TrialStatus::kArenaTooLarge;
    return report;
  }
  g_arena_bytes = request.arena_bytes;
  g_progress.arena_bytes = request.arena_bytes;
  g_outcome = Outcome::kFailed;
  report.status = carry_out(request, working, &report);
  report.stage = static_cast<Stage>(g_progress.stage);
  if (report.status != TrialStatus::kResolverFailed) report.guard = check_guards(&report.guard_offset);
  if (report.status == TrialStatus::kOk && report.guard == GuardState::kOverrun) {
    report.status = TrialStatus::kGuardOverrun;
  }
  if (report.status == TrialStatus::kOk) g_outcome = Outcome::kWorked;
  report.stack_used_bytes = stack_used_bytes();
  copy_last_line(detail, sizeof(detail));
  enter_stage(Stage::kReady);
  return report;
}

bool run_measure(const MeasureRequest& request, MeasureReport* report) {
  *report = MeasureReport{};
  report->first_deviation = report->failed_run = kUnknownU32;
  report->min_cycles = kUnknownU64;
  g_sample_count = 0;
  enter_stage(Stage::kMeasure);
  for (uint32_t run = 0; run < request.warm_up + request.runs; ++run) {
    uint64_t taken = 0;
    uint64_t digest = 0;
    if (request.reset_state != 0 && !restart_state()) return false;
    const Ran ran = run_models(Stage::kMeasure, tell_nobody, &taken, &digest);
    if (ran == Ran::kWithoutInputs) return false;
    const bool ok = ran == Ran::kAll;
    if (run < request.warm_up) {
      if (ok) continue;
      report->failed_run = 0;
      break;
    }
    const uint32_t index = run - request.warm_up;
    if (!ok) {
      report->failed_run = index;
      break;
    }
    if (index == 0) {
      report->output_digest = digest;
      report->first_cycles = taken;
    } else if (digest != report->output_digest && report->first_deviation == kUnknownU32) {
      report->first_deviation = index;
    }
    if (g_sample_count < kSamples) g_samples[g_sample_count++] = taken;
    if (taken < report->min_cycles) report->min_cycles = taken;
    if (taken > report->max_cycles) report->max_cycles = taken;
    report->sum_cycles += taken;
    ++report->runs;
  }
  if (report->runs == 0) report->min_cycles = 0;
  report->stored = g_sample_count;
  report->used_bytes = g_interpreters[0]->arena_used_bytes();
  report->stack_used_bytes = stack_used_bytes();
  uint32_t offset = 0;
  report->guard = check_guards(&offset);
  enter_stage(Stage::kReady);
  return true;
}

Cycles stored_cycles(uint16_t first) {
  Cycles answer = {};
  answer.first = first;
  answer.total = g_sample_count;
  if (first < g_sample_count) {
    const uint16_t left = static_cast<uint16_t>(g_sample_count - first);
    answer.cycles = g_samples + first;
    answer.cycles_count = static_cast<uint8_t>(left < kMaxCyclesCycles ? left : kMaxCyclesCycles);
  }
  return answer;
}

bool run_profile() {
  uint64_t digest = 0;
  g_profiler.start();
  const Ran ran = run_models(Stage::kProfile, tell_nobody, &g_profiled_cycles, &digest);
  g_profiler.stop();
  enter_stage(Stage::kReady);
  return ran == Ran::kAll;
}

Profile profile_rows(uint16_t first, ProfileRow* rows) {
  Profile answer = {};
  answer.first = first;
  answer.total = g_profiler.events_kept();
  answer.events = g_profiler.seen();
  answer.invoke_cycles = g_profiled_cycles;
  answer.rows = rows;
  for (uint16_t i = first; i < answer.total && answer.rows_count < kMaxProfileRows; ++i) {
    const EventProfiler::Event& event = g_profiler.event(i);
    rows[answer.rows_count++] = ProfileRow{event.tag, event.cycles};
  }
  return answer;
}

bool can_trace_operators() { return kHasProfilerEvents && kModelCount == 1; }

bool trace_operators(uint16_t tensor) {
  const bool own = tensor == kOwnOutputs;
  if ((!own && tensor >= kTensorCounts[0]) || !set_inputs(0)) return false;
  enter_stage(Stage::kProfile);
  uint64_t taken = 0;
  g_watched = tensor;
  g_profiler.start(digest_after);
  if (!own) g_profiler.keep_digest(digest_after(0));
  const bool ok = timed_invoke(0, &taken);
  g_profiler.stop();
  enter_stage(Stage::kReady);
  return ok;
}

OperatorDigests operator_digests(uint16_t first) {
  OperatorDigests answer = {};
  answer.first = first;
  answer.total = g_profiler.digests_kept();
  answer.made = answer.total == 0 ? 0 : g_profiler.seen();
  if (first < answer.total) {
    const uint16_t left = static_cast<uint16_t>(answer.total - first);
    answer.digests = g_profiler.digests() + first;
    answer.digests_count = static_cast<uint8_t>(left < kMaxOperatorDigestsDigests ? left : kMaxOperatorDigestsDigests);
  }
  return answer;
}

bool restart_state() {
  for (Interpreter* interpreter : g_interpreters) {
    if (interpreter->Reset() != kTfLiteOk) return false;
  }
  return true;
}

bool recorded_allocations(Allocations* allocations, AllocationRow* rows) {
#if HARNESS_INTERPRETER == 1
  const tflite::RecordingMicroAllocator& recorder = g_interpreters[0]->GetMicroAllocator();
  const auto* memory = recorder.GetSimpleMemoryAllocator();
  *allocations = Allocations{};
  allocations->total_bytes = memory->GetUsedBytes();
  allocations->head_bytes = memory->GetNonPersistentUsedBytes();
  allocations->tail_bytes = memory->GetPersistentUsedBytes();
  allocations->rows = rows;
  // RecordedAllocationType and AllocationCategory have the same order.
  for (uint8_t i = 0; i <= static_cast<uint8_t>(AllocationCategory::kOpData); ++i) {
    const tflite::RecordedAllocation recorded =
        recorder.GetRecordedAllocation(static_cast<tflite::RecordedAllocationType>(i));
    rows[i] = AllocationRow{static_cast<AllocationCategory>(i), recorded.requested_bytes, recorded.used_bytes,
                            recorded.count};
    ++allocations->rows_count;
  }
  return true;
#else
  (void)allocations;
  (void)rows;
  return false;
#endif
}

bool tensor_digests(uint16_t first, TensorDigests* digests, TensorDigestRow* rows) {
#if HARNESS_INTERPRETER == 2
  *digests = TensorDigests{};
  digests->first = first;
  digests->rows = rows;
  uint16_t at = 0;
  for (uint16_t subgraph = 0; subgraph < kSubgraphCount; ++subgraph) {
    for (uint16_t tensor = 0; tensor < kTensorCounts[subgraph]; ++tensor, ++at) {
      if (at < first || digests->rows_count >= kMaxTensorDigestRows) continue;
      const TfLiteEvalTensor* eval = g_interpreters[0]->GetTensor(tensor, subgraph);
      const uint64_t digest = eval == nullptr ? 0 : digest_tensor(eval, kFnvOffset);
      rows[digests->rows_count++] = TensorDigestRow{static_cast<uint8_t>(subgraph), tensor, digest};
    }
  }
  digests->total = at;
  return true;
#else
  (void)first;
  (void)digests;
  (void)rows;
  return false;
#endif
}

const uint8_t* tensor_bytes(ReadObject object, uint8_t index, uint32_t* size) {
  const bool output = object == ReadObject::kOutput;
  for (uint8_t m = 0; m < kModelCount; ++m) {
    Interpreter* interpreter = g_interpreters[m];
    const uint32_t count = output ? interpreter->outputs_size() : interpreter->inputs_size();
    if (index >= count) {
      index = static_cast<uint8_t>(index - count);
      continue;
    }
    if (!make_present(m)) return nullptr;
    const TfLiteTensor* tensor = output ? interpreter->output(index) : interpreter->input(index);
    if (tensor == nullptr || tensor->data.raw == nullptr) return nullptr;
    *size = tensor->bytes;
    return reinterpret_cast<const uint8_t*>(tensor->data.raw);
  }
  return nullptr;
}

InterpreterKind interpreter_kind() { return static_cast<InterpreterKind>(HARNESS_INTERPRETER); }

}  // namespace harness
