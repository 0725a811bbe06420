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
#if HARNESS_RESOURCE_VARIABLES > 0
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#endif

namespace harness {
namespace {

#if HARNESS_INTERPRETER == 1
using Interpreter = tflite::RecordingMicroInterpreter;
#else
using Interpreter = tflite::MicroInterpreter;
#endif

constexpr uint16_t kSamples = 64;

alignas(Interpreter) uint8_t g_interpreter_storage[sizeof(Interpreter)];
Interpreter* g_interpreter = nullptr;
EventProfiler g_profiler;

enum class Outcome : uint8_t { kNone, kFailed, kWorked };
Outcome g_outcome = Outcome::kNone;
uint32_t g_arena_bytes = 0;

uint64_t g_samples[kSamples];
uint16_t g_sample_count = 0;
uint64_t g_profiled_cycles = 0;

#if HARNESS_RESOURCE_VARIABLES > 0
// Apart from the arena under test, as applications do it: only the variables' buffers are in the arena.
alignas(16) uint8_t g_resource_arena[512 + 32 * HARNESS_RESOURCE_VARIABLES];

tflite::MicroResourceVariables* make_resource_variables() {
  tflite::MicroAllocator* allocator = tflite::MicroAllocator::Create(g_resource_arena, sizeof(g_resource_arena));
  return tflite::MicroResourceVariables::Create(allocator, HARNESS_RESOURCE_VARIABLES);
}
#else
tflite::MicroResourceVariables* make_resource_variables() { return nullptr; }
#endif

Interpreter* construct(const tflite::MicroOpResolver& resolver, uint32_t arena_bytes) {
  const tflite::Model* model = tflite::GetModel(g_model);
  tflite::MicroResourceVariables* variables = make_resource_variables();
#if HARNESS_INTERPRETER == 1
  return new (g_interpreter_storage) Interpreter(model, resolver, kArenaBase, arena_bytes, variables, &g_profiler);
#else
  return new (g_interpreter_storage)
      Interpreter(model, resolver, kArenaBase, arena_bytes, variables, &g_profiler, HARNESS_INTERPRETER == 2);
#endif
}

bool set_inputs() {
  enter_stage(Stage::kInput);
  for (uint8_t i = 0; i < g_interpreter->inputs_size(); ++i) {
    TfLiteTensor* tensor = g_interpreter->input(i);
    if (tensor == nullptr || tensor->data.raw == nullptr) return false;
    if (!fill_input(i, tensor->type, reinterpret_cast<uint8_t*>(tensor->data.raw), tensor->bytes)) return false;
  }
  return true;
}

uint64_t output_digest() {
  uint64_t digest = kFnvOffset;
  for (uint8_t i = 0; i < g_interpreter->outputs_size(); ++i) {
    const TfLiteTensor* tensor = g_interpreter->output(i);
    if (tensor == nullptr || tensor->data.raw == nullptr) continue;
    digest = fnv1a(reinterpret_cast<const uint8_t*>(tensor->data.raw), tensor->bytes, digest);
  }
  return digest;
}

bool timed_invoke(uint64_t* taken) {
  watch(static_cast<uint64_t>(kWatchdogSeconds) * kCoreHz);
  const uint64_t begin = cycles();
  const TfLiteStatus status = g_interpreter->Invoke();
  *taken = cycles() - begin;
  watch(0);
  return status == kTfLiteOk;
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
  g_interpreter = construct(*resolver, request.arena_bytes);

  enter(Stage::kAllocate);
  const uint64_t begin = cycles();
  const TfLiteStatus allocated = g_interpreter->AllocateTensors();
  report->allocate_cycles = cycles() - begin;
  watch(0);
  if (allocated != kTfLiteOk) return TrialStatus::kAllocFailed;
  report->used_bytes = g_interpreter->arena_used_bytes();
#if HARNESS_INTERPRETER == 1
  const auto* memory = g_interpreter->GetMicroAllocator().GetSimpleMemoryAllocator();
  report->head_bytes = memory->GetNonPersistentUsedBytes();
  report->tail_bytes = memory->GetPersistentUsedBytes();
#endif
  if (request.invoke == 0) return TrialStatus::kOk;

  if (!set_inputs()) return TrialStatus::kInputFailed;
  enter(Stage::kInvoke);
  if (!timed_invoke(&report->invoke_cycles)) return TrialStatus::kInvokeFailed;

  enter_stage(Stage::kCheck);
  report->output_digest = output_digest();
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
    if (request.reset_state != 0 && g_interpreter->Reset() != kTfLiteOk) return false;
    if (!set_inputs()) return false;
    enter_stage(Stage::kMeasure);
    const bool ok = timed_invoke(&taken);
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
    const uint64_t digest = output_digest();
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
  report->used_bytes = g_interpreter->arena_used_bytes();
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
  if (!set_inputs()) return false;
  enter_stage(Stage::kProfile);
  g_profiler.start();
  const bool ok = timed_invoke(&g_profiled_cycles);
  g_profiler.stop();
  enter_stage(Stage::kReady);
  return ok;
}

Profile profile_rows(uint16_t first, ProfileRow* rows) {
  Profile answer = {};
  answer.first = first;
  answer.total = g_profiler.kept();
  answer.events = g_profiler.seen();
  answer.invoke_cycles = g_profiled_cycles;
  answer.rows = rows;
  for (uint16_t i = first; i < answer.total && answer.rows_count < kMaxProfileRows; ++i) {
    const EventProfiler::Event& event = g_profiler.event(i);
    rows[answer.rows_count++] = ProfileRow{event.tag, event.cycles};
  }
  return answer;
}

bool restart_state() { return g_interpreter->Reset() == kTfLiteOk; }

bool recorded_allocations(Allocations* allocations, AllocationRow* rows) {
#if HARNESS_INTERPRETER == 1
  const tflite::RecordingMicroAllocator& recorder = g_interpreter->GetMicroAllocator();
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
      const TfLiteEvalTensor* eval = g_interpreter->GetTensor(tensor, subgraph);
      size_t bytes = 0;
      uint64_t digest = 0;
      if (eval != nullptr && eval->data.data != nullptr && eval->dims != nullptr &&
          tflite::TfLiteEvalTensorByteLength(eval, &bytes) == kTfLiteOk) {
        digest = fnv1a(static_cast<const uint8_t*>(eval->data.data), bytes);
      }
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
  const uint32_t count = output ? g_interpreter->outputs_size() : g_interpreter->inputs_size();
  if (index >= count) return nullptr;
  const TfLiteTensor* tensor = output ? g_interpreter->output(index) : g_interpreter->input(index);
  if (tensor == nullptr || tensor->data.raw == nullptr) return nullptr;
  *size = tensor->bytes;
  return reinterpret_cast<const uint8_t*>(tensor->data.raw);
}

InterpreterKind interpreter_kind() { return static_cast<InterpreterKind>(HARNESS_INTERPRETER); }

}  // namespace harness
