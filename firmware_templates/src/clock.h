// Implemented once per chip family, in clock/.
#pragma once

#include <cstdint>

namespace harness {

// Before memory is initialised: memories that need a clock, access ports that close themselves. Uses no static data.
void prepare_chip();

// The clock tree of the board file. Where the outside clock does not start, the inside one at the same rate.
void start_clock();

// Read from the hardware, not from the board file.
uint32_t flash_wait_states();
uint8_t flash_accelerator_enabled();  // 0, 1, or 255 where there is none

// Whether the outside clock failed and the inside oscillator is used instead.
bool clock_fell_back();

// What the chip's reset flags say; clears them.
const char* take_reset_cause();

}  // namespace harness
