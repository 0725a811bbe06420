// What TFLM prints: the first and the last lines are kept; nothing is sent by itself.
#pragma once

#include <cstdint>

namespace harness {

void start_log();
void log_line(const char* text);

// The last line, cut to `size` - 1 characters and ended with NUL.
void copy_last_line(char* out, uint32_t size);

const uint8_t* log_bytes();
uint32_t log_size();

}  // namespace harness
