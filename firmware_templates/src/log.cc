#include "log.h"

#include <cstring>

#include "faults.h"
#include "tensorflow/lite/micro/cortex_m_generic/debug_log_callback.h"

namespace harness {
namespace {

constexpr uint32_t kLogBytes = 512;

char g_log[kLogBytes];
uint32_t g_log_size = 0;
char g_last_line[120];

}  // namespace

void log_line(const char* text) {
  uint32_t length = strlen(text);
  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r')) --length;
  if (length == 0) return;  // MicroPrintf ends its lines with a call of its own
  const uint32_t kept = length < sizeof(g_last_line) - 1 ? length : sizeof(g_last_line) - 1;
  memcpy(g_last_line, text, kept);
  g_last_line[kept] = '\0';
  // Keep the first lines: what went wrong first explains the rest.
  if (g_log_size + length + 1 <= kLogBytes) {
    memcpy(g_log + g_log_size, text, length);
    g_log_size += length;
    g_log[g_log_size++] = '\n';
  }
}

void copy_last_line(char* out, uint32_t size) {
  strncpy(out, g_last_line, size - 1);
  out[size - 1] = '\0';
}

const uint8_t* log_bytes() { return reinterpret_cast<const uint8_t*>(g_log); }
uint32_t log_size() { return g_log_size; }

namespace {

// TFLM's checks print this word and then loop for ever (op_macros.h, TFLITE_ABORT): the loop ends here. The line
// before it tells why, and is what the fault record keeps.
void on_debug_log(const char* text) {
  if (strncmp(text, "HALTED", 6) == 0) {
    fault_from_halt(reinterpret_cast<uint32_t>(__builtin_return_address(0)));
  }
  log_line(text);
}

}  // namespace

void start_log() { RegisterDebugLogCallback(on_debug_log); }

}  // namespace harness
