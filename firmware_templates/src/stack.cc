#include "stack.h"

#include "board.h"
#include "link_symbols.h"
#include "registers.h"

namespace harness {
namespace {

constexpr uint32_t kPaint = 0xC5C5C5C5;

}  // namespace

void paint_stack() {
  uint32_t* sp;
  asm volatile("mov %0, sp" : "=r"(sp));
  for (volatile uint32_t* word = __stack_limit; word < sp - 16; ++word) *word = kPaint;
}

void guard_stack() {
  if (kHasStackLimit || !kHasMpu) return;
  barrier();
  reg(scs::kMpuControl) = 0;
  reg(scs::kMpuNumber) = 0;
  reg(scs::kMpuBase) = reinterpret_cast<uint32_t>(__stack_guard);
  // Execute never, no access, normal memory, 256 bytes (2^(7+1)), on. DDI 0403E B3.5.9.
  reg(scs::kMpuAttributes) = (1u << 28) | (1u << 19) | (7u << 1) | 1u;
  reg(scs::kMpuControl) = 5;  // on, everything else as without MPU
  barrier();
}

uint32_t stack_used_bytes() {
  const uint32_t* word = __stack_limit;
  while (word < _estack && *word == kPaint) ++word;
  return static_cast<uint32_t>(_estack - word) * 4;
}

uint32_t stack_size_bytes() { return static_cast<uint32_t>(_estack - __stack_limit) * 4; }

}  // namespace harness
