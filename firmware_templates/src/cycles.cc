#include "cycles.h"

#include "board.h"
#include "faults.h"
#include "registers.h"

namespace harness {
namespace {

constexpr uint32_t kSystickPeriod = 0x1000000;  // SysTick is 24 bits wide

Counter g_counter = Counter::kSystick;
uint32_t g_high = 0;          // wraps of the 32-bit counter
uint32_t g_last = 0;          // its last value seen
uint64_t g_systick_base = 0;  // cycles of finished SysTick periods
uint64_t g_watch_until = 0;

bool counter_runs() {
  const uint32_t before = reg(dwt::kCycleCount);
  for (int i = 0; i < 16; ++i) asm volatile("nop");
  const uint32_t after = reg(dwt::kCycleCount);
  return after - before != 0;
}

// Unconditional, whatever a debugger left behind: a locked or stopped counter reads as 0 for ever.
bool start_cycle_counter() {
  reg(scs::kDemcr) = reg(scs::kDemcr) | (1u << 24);  // TRCENA
  if (kHasCycleCounterLock || (reg(dwt::kLockStatus) & 1u) != 0) reg(dwt::kLockAccess) = 0xC5ACCE55;
  if ((reg(dwt::kControl) & (1u << 25)) != 0) return false;                   // NOCYCCNT
  reg(dwt::kCycleCount) = 0;
  reg(dwt::kControl) = reg(dwt::kControl) | 1u;
  barrier();
  return counter_runs() && counter_runs();
}

uint64_t read_cycle_counter() {
  const uint32_t now = reg(dwt::kCycleCount);
  if (now < g_last) ++g_high;
  g_last = now;
  return (static_cast<uint64_t>(g_high) << 32) | now;
}

uint64_t read_systick() {
  uint32_t value = reg(scs::kSystickValue);
  uint64_t base = g_systick_base;
  if ((reg(scs::kIcsr) & (1u << 26)) != 0) {  // the period ended, and its interrupt waits
    value = reg(scs::kSystickValue);
    base += kSystickPeriod;
  }
  return base + (kSystickPeriod - 1 - value);
}

}  // namespace

void start_cycles() {
  if (start_cycle_counter()) g_counter = Counter::kCycleCounter;
  reg(scs::kShpr3) = reg(scs::kShpr3) & 0x00FFFFFFu;  // highest priority: it watches everything else
  reg(scs::kSystickReload) = kSystickPeriod - 1;
  reg(scs::kSystickValue) = 0;
  reg(scs::kSystickControl) = 7;  // processor clock, interrupt, on
  asm volatile("cpsie i" ::: "memory");
}

Counter counter() { return g_counter; }

uint64_t cycles() {
  NoInterrupts guard;
  return g_counter == Counter::kCycleCounter ? read_cycle_counter() : read_systick();
}

void watch(uint64_t limit_cycles) {
  const uint64_t until = limit_cycles == 0 ? 0 : cycles() + limit_cycles;
  NoInterrupts guard;
  g_watch_until = until;
}

void restart_tick() {
  NoInterrupts guard;
  g_systick_base = read_systick();  // what of the period is over, and one that has ended and waits
  reg(scs::kSystickValue) = 0;      // counts from the start of its period again
  reg(scs::kIcsr) = 1u << 25;       // PENDSTCLR
  barrier();
}

// Once per 2^24 cycles, or less often while runs are timed: often enough that no wrap of the 32-bit counter is missed.
extern "C" void harness_systick(const uint32_t* frame) {
  g_systick_base += kSystickPeriod;
  const uint64_t now = g_counter == Counter::kCycleCounter ? read_cycle_counter() : read_systick();
  if (g_watch_until != 0 && now >= g_watch_until) fault_from_watchdog(frame);
}

}  // namespace harness
