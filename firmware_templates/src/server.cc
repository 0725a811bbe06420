#include "server.h"

#include "arena.h"
#include "board.h"
#include "build_info.h"
#include "caches.h"
#include "clock.h"
#include "cycles.h"
#include "faults.h"
#include "frames.h"
#include "inputs.h"
#include "link_symbols.h"
#include "log.h"
#include "model.h"
#include "session.h"
#include "stack.h"
#include "uart.h"

namespace harness {
namespace {

FrameReceiver g_receiver;
uint8_t g_raw[kMaxFrameBytes];    // the answer before stuffing
uint8_t g_sent[kMaxSentBytes];    // and as sent, kept for a repeated request
uint32_t g_sent_size = 0;
FrameHeader g_last = {};          // the request that g_sent answers
bool g_has_session = false;
uint32_t g_session_nonce = 0;
const char* g_reset_cause = "";

constexpr uint8_t kChunkBytes = 224;

uint32_t write_header(uint8_t* raw, const FrameHeader& request, MessageType type) {
  memcpy(raw, &request.nonce, 4);
  memcpy(raw + 4, &request.sequence, 2);
  raw[6] = static_cast<uint8_t>(type);
  return kHeaderBytes;
}

template <typename Message>
void answer(const Message& message) {
  const uint32_t header = write_header(g_raw, g_last, Message::kType);
  Writer writer(g_raw + header, kMaxPayloadBytes);
  put(writer, message);
  g_sent_size = seal_frame(g_raw, header + writer.size(), g_sent);
  uart_write(g_sent, g_sent_size);
}

void refuse(RefusalReason reason, const char* detail) {
  answer(Refused{reason, kProtocolMajor, kProtocolMinor, detail});
}

// Said before each stage of long work. Its own small buffers: the answer's belong to the last request.
void say_working(Stage stage) {
  uint8_t raw[kHeaderBytes + 5 + kCrcBytes];
  uint8_t sent[sizeof(raw) + 3];
  const uint32_t header = write_header(raw, g_last, Working::kType);
  Writer writer(raw + header, 5);
  put(writer, Working{stage, g_progress.arena_bytes});
  uart_write(sent, seal_frame(raw, header + writer.size(), sent));
}

uint32_t capabilities() {
  const auto bit = [](Capability capability) { return 1u << static_cast<uint32_t>(capability); };
  uint32_t bits = bit(Capability::kMeasure) | bit(Capability::kBaud) | bit(Capability::kGuards);
  if (kHasProfilerEvents) bits |= bit(Capability::kProfile);
  if (can_trace_operators()) bits |= bit(Capability::kOperatorDigests);
  if (interpreter_kind() == InterpreterKind::kRecording) bits |= bit(Capability::kAllocations);
  if (interpreter_kind() == InterpreterKind::kPreserveAll) bits |= bit(Capability::kTensorDigests);
  if (can_stage_inputs()) bits |= bit(Capability::kStagedInput);
  return bits;
}

TimingKind timing() { return counter() == Counter::kCycleCounter ? TimingKind::kCycles : TimingKind::kSystick; }

void handle(const HelloRequest& request) {
  g_has_session = true;
  g_session_nonce = g_last.nonce;
  if (request.major != kProtocolMajor) {
    refuse(RefusalReason::kWrongVersion, "");
    return;
  }
  Hello hello = {};
  hello.major = kProtocolMajor;
  hello.minor = kProtocolMinor;
  hello.build_id = kBuildId;
  hello.model_sha256 = kModelSha256;
  hello.board = kBoardName;
  hello.tflm_commit = kTflmCommit;
  hello.kernels = kKernels;
  hello.interpreter = interpreter_kind();
  hello.abi = Abi::kIlp32;
  hello.timing = timing();
  hello.clock_hz = kCoreHz;
  hello.capacity_bytes = kArenaCapacity;
  hello.base_address = reinterpret_cast<uint32_t>(kArenaBase);
  hello.base_alignment = 16;
  hello.chunk_bytes = kChunkBytes;
  hello.capabilities = capabilities();
  hello.boot_count = boot_count();
  hello.fault_pending = fault_pending() ? 1 : 0;
  hello.input_count = kInputCount;
  hello.output_count = kOutputCount;
  answer(hello);
}

void handle(const EnvironmentRequest&) {
  Environment environment = {};
  environment.compiler = kCompiler;
  environment.optimisation = kOptimisation;
  environment.arena_region = kArenaRegion;
  environment.core_clock_hz = kCoreHz;
  environment.flash_wait_states = static_cast<uint8_t>(flash_wait_states());
  environment.icache_enabled = instruction_cache_state();
  environment.dcache_enabled = data_cache_state();
  environment.flash_accelerator_enabled = flash_accelerator_enabled();
  environment.flash_bytes = reinterpret_cast<uint32_t>(__flash_used);
  environment.ram_bytes = reinterpret_cast<uint32_t>(__ram_used);
  environment.stack_bytes = stack_size_bytes();
  environment.baud = uart_baud();
  environment.reset_cause = g_reset_cause;
  answer(environment);
}

void handle(const SizesRequest& request) {
  SizeRow rows[kMaxSizeRows];
  answer(struct_sizes(request.first, rows));
}

void handle(const SetInput& request) {
  if (set_input(request)) {
    answer(InputSet{request.index});
  } else {
    refuse(RefusalReason::kBadRequest, "no such input, or no such source of input in this image");
  }
}

void handle(const WriteInput& request) {
  InputWritten written;
  if (!can_stage_inputs()) {
    refuse(RefusalReason::kUnsupported, "no room for inputs beside the arena");
  } else if (stage_input(request, &written)) {
    answer(written);
  } else {
    refuse(RefusalReason::kBadRequest, "chunk out of order or beyond the input");
  }
}

void handle(const TrialRequest& request) {
  if (trial_done()) {
    refuse(RefusalReason::kWrongState, "one trial per boot");
  } else if (kArenaIsStatic && request.arena_bytes != kArenaCapacity) {
    refuse(RefusalReason::kBadRequest, "static arena: only its own size");
  } else {
    answer(run_trial(request, say_working));
  }
}

// What only a finished trial can answer.
bool ready() {
  if (trial_worked()) return true;
  refuse(RefusalReason::kWrongState, "no trial has worked since boot");
  return false;
}

void handle(const MeasureRequest& request) {
  if (!ready()) return;
  say_working(Stage::kMeasure);
  MeasureReport report;
  if (run_measure(request, &report)) {
    answer(report);
  } else {
    refuse(RefusalReason::kWrongState, "the inputs could not be set");
  }
}

void handle(const CyclesRequest& request) { answer(stored_cycles(request.first)); }

void handle(const ProfileRequest& request) {
  if (!kHasProfilerEvents) {
    refuse(RefusalReason::kUnsupported, "TFLM was built with TF_LITE_STRIP_ERROR_STRINGS");
    return;
  }
  if (!ready()) return;
  if (request.run != 0) {
    say_working(Stage::kProfile);
    if (!run_profile()) {
      refuse(RefusalReason::kWrongState, "Invoke failed under the profiler");
      return;
    }
  }
  ProfileRow rows[kMaxProfileRows];
  answer(profile_rows(request.first, rows));
}

void handle(const AllocationsRequest&) {
  if (interpreter_kind() != InterpreterKind::kRecording) {
    refuse(RefusalReason::kUnsupported, "not built with the recording interpreter");
    return;
  }
  if (!ready()) return;
  Allocations allocations;
  AllocationRow rows[kMaxAllocationRows];
  if (recorded_allocations(&allocations, rows)) answer(allocations);
}

void handle(const ReadRequest& request) {
  const uint8_t* data = nullptr;
  uint32_t size = 0;
  if (request.object == ReadObject::kLog) {
    data = log_bytes();
    size = log_size();
  } else if (request.object == ReadObject::kOutput || request.object == ReadObject::kInput) {
    if (!ready()) return;
    data = tensor_bytes(request.object, request.index, &size);
  }
  if (data == nullptr || request.offset > size) {
    refuse(RefusalReason::kBadRequest, "no such object, or beyond its end");
    return;
  }
  uint32_t count = request.size < kChunkBytes ? request.size : kChunkBytes;
  if (count > size - request.offset) count = size - request.offset;
  answer(ReadReply{request.object, request.index, request.offset, size, data + request.offset,
                   static_cast<uint8_t>(count)});
}

void handle(const TensorDigestsRequest& request) {
  if (interpreter_kind() != InterpreterKind::kPreserveAll) {
    refuse(RefusalReason::kUnsupported, "not built with all tensors preserved");
    return;
  }
  if (!ready()) return;
  TensorDigests digests;
  TensorDigestRow rows[kMaxTensorDigestRows];
  if (tensor_digests(request.first, &digests, rows)) answer(digests);
}

void handle(const OperatorDigestsRequest& request) {
  if (!can_trace_operators()) {
    refuse(RefusalReason::kUnsupported, "");
    return;
  }
  if (!ready()) return;
  if (request.run != 0) {
    say_working(Stage::kProfile);
    if (!trace_operators(request.tensor)) {
      refuse(RefusalReason::kBadRequest, "Invoke failed under the profiler");
      return;
    }
  }
  answer(operator_digests(request.first));
}

void handle(const FaultRequest& request) {
  answer(fault_record());
  if (request.clear != 0) clear_fault();
}

void handle(const ResetRequest&) {
  answer(Resetting{});
  reset_now();
}

void handle(const PingRequest& request) { answer(Ping{request.data, request.data_count}); }

void handle(const CountersRequest&) {
  answer(Counters{cycles(), stack_used_bytes(), g_receiver.received(), g_receiver.damaged()});
}

void handle(const RestartRequest&) {
  if (ready()) answer(Restarted{static_cast<uint8_t>(restart_state() ? 1 : 0)});
}

// Deeper and deeper, with room on each level that the compiler cannot leave out.
__attribute__((noinline)) uint32_t fill_stack(uint32_t level) {
  volatile uint32_t room[16];
  room[level & 15] = level;
  if (level != 0xFFFFFFFF) room[(level + 1) & 15] = fill_stack(level + 1);
  return room[level & 15];
}

void handle(const SelfTestRequest& request) {
  if (request.kind != SelfTest::kFault && request.kind != SelfTest::kHang && request.kind != SelfTest::kStack) {
    refuse(RefusalReason::kUnsupported, "");
    return;
  }
  answer(SelfTesting{request.kind});
  if (request.kind == SelfTest::kFault) asm volatile("udf #0");
  if (request.kind == SelfTest::kStack) fill_stack(0);
  watch(kCoreHz / 10);
  for (;;) asm volatile("nop");
}

// The new rate holds only once a frame has been heard at it.
struct BaudTrial {
  uint32_t old_baud = 0;  // 0: none running
  uint64_t until = 0;
};
BaudTrial g_baud_trial;

void handle(const BaudRequest& request) {
  const uint32_t possible = uart_possible_baud(request.baud);
  if (possible == 0) {
    refuse(RefusalReason::kBadRequest, "the divider cannot make this rate");
    return;
  }
  answer(BaudReply{possible});
  g_baud_trial.old_baud = uart_baud();
  g_baud_trial.until = cycles() + static_cast<uint64_t>(request.confirm_ms) * (kCoreHz / 1000);
  uart_set_baud(request.baud);
}

void give_up_silent_baud() {
  if (g_baud_trial.old_baud == 0 || cycles() < g_baud_trial.until) return;
  uart_set_baud(g_baud_trial.old_baud);
  g_baud_trial.old_baud = 0;
}

template <typename Request>
void read_and_handle(const ReceivedFrame& frame) {
  Reader reader(frame.payload, frame.payload_size);
  Request request = {};
  get(reader, &request);
  if (reader.complete()) {
    handle(request);
  } else {
    refuse(RefusalReason::kBadRequest, "payload too short");
  }
}

void dispatch(const ReceivedFrame& frame) {
  switch (static_cast<MessageType>(frame.header.type)) {
    case MessageType::kHelloRequest:
      return read_and_handle<HelloRequest>(frame);
    case MessageType::kEnvironmentRequest:
      return read_and_handle<EnvironmentRequest>(frame);
    case MessageType::kSizesRequest:
      return read_and_handle<SizesRequest>(frame);
    case MessageType::kSetInput:
      return read_and_handle<SetInput>(frame);
    case MessageType::kWriteInput:
      return read_and_handle<WriteInput>(frame);
    case MessageType::kTrialRequest:
      return read_and_handle<TrialRequest>(frame);
    case MessageType::kMeasureRequest:
      return read_and_handle<MeasureRequest>(frame);
    case MessageType::kCyclesRequest:
      return read_and_handle<CyclesRequest>(frame);
    case MessageType::kProfileRequest:
      return read_and_handle<ProfileRequest>(frame);
    case MessageType::kAllocationsRequest:
      return read_and_handle<AllocationsRequest>(frame);
    case MessageType::kReadRequest:
      return read_and_handle<ReadRequest>(frame);
    case MessageType::kTensorDigestsRequest:
      return read_and_handle<TensorDigestsRequest>(frame);
    case MessageType::kOperatorDigestsRequest:
      return read_and_handle<OperatorDigestsRequest>(frame);
    case MessageType::kFaultRequest:
      return read_and_handle<FaultRequest>(frame);
    case MessageType::kResetRequest:
      return read_and_handle<ResetRequest>(frame);
    case MessageType::kBaudRequest:
      return read_and_handle<BaudRequest>(frame);
    case MessageType::kPingRequest:
      return read_and_handle<PingRequest>(frame);
    case MessageType::kCountersRequest:
      return read_and_handle<CountersRequest>(frame);
    case MessageType::kSelfTestRequest:
      return read_and_handle<SelfTestRequest>(frame);
    case MessageType::kRestartRequest:
      return read_and_handle<RestartRequest>(frame);
    default:
      refuse(RefusalReason::kUnsupported, "");
  }
}

void on_frame(const ReceivedFrame& frame) {
  if (frame.header.type >= 0x80) return;  // an answer, or our own echo: not for us
  const bool hello = frame.header.type == static_cast<uint8_t>(MessageType::kHelloRequest);
  const bool repeated = g_sent_size != 0 && frame.header.nonce == g_last.nonce &&
                        frame.header.sequence == g_last.sequence && frame.header.type == g_last.type;
  if (repeated) {
    uart_write(g_sent, g_sent_size);
    return;
  }
  g_baud_trial.old_baud = 0;  // heard at the new rate; a request to change it that comes twice says nothing
  g_last = frame.header;
  if (!hello && (!g_has_session || frame.header.nonce != g_session_nonce)) {
    refuse(RefusalReason::kNoSession, "");
    return;
  }
  dispatch(frame);
}

// One line for a terminal, ended by the zero byte that frames need between them.
void say_boot_line() {
  const auto say = [](const char* text) {
    char copy[64];  // in RAM: EasyDMA cannot read flash
    while (*text != '\0') {
      uint32_t count = 0;
      while (count < sizeof(copy) && text[count] != '\0') ++count;
      memcpy(copy, text, count);
      uart_write(reinterpret_cast<const uint8_t*>(copy), count);
      text += count;
    }
  };
  say(HARNESS_BOOT_LINE_PREFIX HARNESS_PROTOCOL_TEXT " board=");
  say(kBoardName);
  say(" build=");
  say(kBuildIdText);
  say("\r\n");
  uint8_t zero = 0;
  uart_write(&zero, 1);
}

}  // namespace

void serve() {
  g_reset_cause = take_reset_cause();
  if (clock_fell_back()) log_line("the outside clock did not start: the inside oscillator is used");
  enter_stage(Stage::kReady);
  say_boot_line();
  for (;;) {
    uint8_t byte;
    ReceivedFrame frame;
    if (uart_read(&byte)) {
      if (g_receiver.feed(byte, &frame)) on_frame(frame);
    } else {
      give_up_silent_baud();
    }
  }
}

}  // namespace harness
