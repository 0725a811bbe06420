// The stack: painted at boot, its deepest use read back, its end guarded.
#pragma once

#include <cstdint>

namespace harness {

// Inline and before any deep call: paints from the limit to just below the caller.
void paint_stack();

// Forbids the bytes below the stack (MPU); ARMv8-M cores have a limit register instead, set at reset.
void guard_stack();

uint32_t stack_used_bytes();
uint32_t stack_size_bytes();

}  // namespace harness
