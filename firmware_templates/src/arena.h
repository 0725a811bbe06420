// The tensor arena: static, 16-aligned, with guards on both sides, in the memory that the linker script names.
#pragma once

#include <cstdint>

namespace harness {

constexpr uint32_t kGuardBytes = 32;
constexpr uint8_t kArenaFill = 0xA5;

// Rendered: arena.cc.
extern const uint32_t kArenaCapacity;
extern const bool kArenaIsStatic;  // the size under test is fixed at compile time
extern uint8_t* const kArenaBase;

// Fills `size` bytes from the base with 0xA5, and turns all the rest, up to the guards' ends, into guard.
void prepare_arena(uint32_t size);

// True when every guard byte is as prepare_arena(size) left it. Else `offset` is the first bad byte's distance from
// the base: negative below it, at least `size` above.
bool guards_intact(uint32_t size, int32_t* offset);

}  // namespace harness
