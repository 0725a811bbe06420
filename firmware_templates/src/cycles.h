// Counts processor cycles since boot, beyond 32 bits.
#pragma once

#include <cstdint>

namespace harness {

enum class Counter : uint8_t { kCycleCounter, kSystick };

// Starts the DWT cycle counter, unlocked where it has a lock, and SysTick. Reads back that the counter runs; where it
// does not (NOCYCCNT, or a core without one) SysTick counts instead, and counter() says so.
void start_cycles();

Counter counter();

// Cycles since start_cycles(). Never goes back.
uint64_t cycles();

// Begins a period of SysTick anew. What takes less than 2^24 cycles from here on is not interrupted, and what takes
// longer is interrupted at the same points every time: equal work takes an equal count.
void restart_tick();

// Ends the program (watchdog fault) when `limit_cycles` from now have passed; 0 switches the watch off.
void watch(uint64_t limit_cycles);

}  // namespace harness
