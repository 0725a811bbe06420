// What went wrong, kept over a reset in memory that the start-up code does not touch.
#pragma once

#include <cstdint>

#include "wire.h"

namespace harness {

struct FaultStore {
  uint32_t magic;
  uint32_t kind;
  uint32_t stage;
  uint32_t arena_bytes;
  uint32_t pc;
  uint32_t lr;
  uint32_t sp;
  uint32_t cfsr;
  uint32_t hfsr;
  uint32_t mmfar;
  uint32_t bfar;
  char text[120];
  uint32_t checksum;
};

// Where the program is. Kept with the fault, so that a fault tells where it happened.
struct Progress {
  volatile uint32_t stage;
  volatile uint32_t arena_bytes;
};
extern Progress g_progress;

inline void enter_stage(Stage stage) { g_progress.stage = static_cast<uint32_t>(stage); }

// Counts boots since power was applied.
uint32_t boot_count();

void start_faults();
bool fault_pending();
FaultRecord fault_record();
void clear_fault();

// A TFLM check stopped, or abort() was called: `lr` is the caller.
[[noreturn]] void fault_from_halt(uint32_t lr);
[[noreturn]] void fault_from_watchdog(const uint32_t* frame);
[[noreturn]] void reset_now();

}  // namespace harness
