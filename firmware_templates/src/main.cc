#include "cycles.h"
#include "log.h"
#include "server.h"
#include "stack.h"
#include "uart.h"

extern "C" [[noreturn]] void harness_main() {
  harness::guard_stack();
  harness::start_cycles();
  harness::start_log();
  harness::start_uart();
  harness::serve();
}
