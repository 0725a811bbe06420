// One trial of an arena layout on real TFLM, under an emulator with semihosting. The emulator's argument says which:
//   one:SIZE           one interpreter with an arena of SIZE bytes
//   two:SIZE:SIZE      one interpreter, persistent and non-persistent arena apart
//   shared:SIZE        two interpreters (models A and B) with one allocator
// Prints "used=N outputs=HASH", where the hash is over the outputs of all runs, and ends with 0; anything else failed.

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tensorflow/lite/micro/cortex_m_generic/debug_log_callback.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/system_setup.h"
#include "tensorflow/lite/schema/schema_generated.h"

asm(".section .rodata.models, \"a\"\n"
    ".balign 16\n.global model_a\nmodel_a:\n.incbin \"" MODEL_A "\"\n"
    ".balign 16\n.global model_b\nmodel_b:\n.incbin \"" MODEL_B "\"\n.previous\n");
extern "C" const unsigned char model_a[], model_b[];

namespace {

constexpr size_t kCapacity = 512 * 1024;
alignas(16) uint8_t first_arena[kCapacity];
alignas(16) uint8_t second_arena[kCapacity];

int Semihosting(int operation, const void* argument) {
  register int r0 asm("r0") = operation;
  register const void* r1 asm("r1") = argument;
  asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void Print(const char* text) { Semihosting(0x04, text); }  // SYS_WRITE0

[[noreturn]] void End(int code) {
  const int block[2] = {0x20026, code};  // ADP_Stopped_ApplicationExit
  Semihosting(0x20, block);              // SYS_EXIT_EXTENDED
  for (;;) {
  }
}

[[noreturn]] void Fail(const char* text) {
  Print(text);
  End(1);
}

// FNV-1a over the outputs of one run with a fixed input.
uint32_t Run(tflite::MicroInterpreter& interpreter, uint32_t hash) {
  for (size_t n = 0; n < interpreter.inputs_size(); ++n) {
    TfLiteTensor* input = interpreter.input(n);
    for (size_t i = 0; i < input->bytes; ++i) {
      input->data.uint8[i] = input->type == kTfLiteFloat32 ? 0 : static_cast<uint8_t>(7 * i + 3);
    }
  }
  if (interpreter.Invoke() != kTfLiteOk) Fail("Invoke\n");
  for (size_t n = 0; n < interpreter.outputs_size(); ++n) {
    const TfLiteTensor* output = interpreter.output(n);
    for (size_t i = 0; i < output->bytes; ++i) hash = (hash ^ output->data.uint8[i]) * 16777619u;
  }
  return hash;
}

void Allocate(tflite::MicroInterpreter& interpreter) {
  if (interpreter.AllocateTensors() != kTfLiteOk) Fail("AllocateTensors\n");
}

}  // namespace

int main() {
  RegisterDebugLogCallback(Print);
  tflite::InitializeTarget();
  static char line[128];
  struct {
    char* text;
    int length;
  } command = {line, sizeof line - 1};
  Semihosting(0x15, &command);  // SYS_GET_CMDLINE
  char layout[8] = {};
  unsigned size = 0, other_size = 0;
  const char* colon = strchr(line, ' ');
  sscanf(colon ? colon + 1 : line, "%7[^:]:%u:%u", layout, &size, &other_size);
  memset(first_arena, 0xA5, sizeof first_arena);
  memset(second_arena, 0xA5, sizeof second_arena);

  static tflite::MicroMutableOpResolver<12> resolver;
  resolver.AddAdd();
  resolver.AddAveragePool2D();
  resolver.AddConv2D();
  resolver.AddDepthwiseConv2D();
  resolver.AddFullyConnected();
  resolver.AddMean();
  resolver.AddReshape();
  resolver.AddSoftmax();
  resolver.AddSvdf();

  const tflite::Model* a = tflite::GetModel(model_a);
  const tflite::Model* b = tflite::GetModel(model_b);
  uint32_t hash = 2166136261u;
  size_t used = 0;
  if (!strcmp(layout, "shared")) {
    tflite::MicroAllocator* allocator = tflite::MicroAllocator::Create(first_arena, size);
    static tflite::MicroInterpreter one(a, resolver, allocator), other(b, resolver, allocator);
    Allocate(one);
    Allocate(other);
    used = other.arena_used_bytes();
    hash = Run(one, Run(other, Run(one, hash)));
  } else {
    static tflite::MicroInterpreter interpreter =
        !strcmp(layout, "two")
            ? tflite::MicroInterpreter(a, resolver,
                                       tflite::MicroAllocator::Create(first_arena, size, second_arena, other_size))
            : tflite::MicroInterpreter(a, resolver, first_arena, size);
    Allocate(interpreter);
    used = interpreter.arena_used_bytes();
    hash = Run(interpreter, hash);
  }
  static char text[64];
  snprintf(text, sizeof text, "used=%u outputs=%08x\n", static_cast<unsigned>(used), static_cast<unsigned>(hash));
  Print(text);
  End(0);
}

extern "C" {
extern uint32_t __stack_top, __data_start, __data_end, __data_load, __bss_start, __bss_end;
extern void (*__init_array_start[])();
extern void (*__init_array_end[])();

void abort() { Fail("abort\n"); }
void* _sbrk(int) { return reinterpret_cast<void*>(-1); }  // no heap

void Fault() { Fail("fault\n"); }

__attribute__((used)) void Start() {
  for (uint32_t *from = &__data_load, *to = &__data_start; to < &__data_end;) *to++ = *from++;
  for (uint32_t* to = &__bss_start; to < &__bss_end;) *to++ = 0;
  for (auto constructor = __init_array_start; constructor < __init_array_end; ++constructor) (*constructor)();
  main();
}

__attribute__((naked)) void Reset() {
  asm volatile(
      "ldr r0, =0xE000ED88\n ldr r1, [r0]\n orr r1, r1, #0xF00000\n str r1, [r0]\n"  // CPACR: the FPU on
      "dsb\n isb\n b Start\n");
}

__attribute__((section(".vectors"), used)) void* const vectors[16] = {
    &__stack_top,
    reinterpret_cast<void*>(Reset),
    reinterpret_cast<void*>(Fault),
    reinterpret_cast<void*>(Fault),
    reinterpret_cast<void*>(Fault),
    reinterpret_cast<void*>(Fault),
    reinterpret_cast<void*>(Fault)};
}
