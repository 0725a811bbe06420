/* Divisions by zero, with and without CCR.DIV_0_TRP. After a byte from the host, one check per line of output. */
#include "board.h"

static volatile uint32_t fault_cfsr, fault_hfsr, fault_pc;

/* Notes the fault and goes on behind the instruction that faulted. */
void note_fault(uint32_t* frame) {
  fault_cfsr = REG(0xE000ED28);
  fault_hfsr = REG(0xE000ED2C);
  fault_pc = frame[6];
  REG(0xE000ED28) = fault_cfsr;
  REG(0xE000ED2C) = fault_hfsr;
  frame[6] += 4;
  frame[7] &= ~0x0600FC00u; /* out of the IT block */
}
__attribute__((naked)) void on_fault(void) {
  __asm volatile("tst lr, #4\n ite eq\n mrseq r0, msp\n mrsne r0, psp\n push {r4, lr}\n bl note_fault\n pop {r4, pc}");
}
void on_usagefault(void) __attribute__((alias("on_fault")));

static void report(const char* name, uint32_t value) {
  put_text(name);
  put_value(" ", value);
  put_value("  cfsr", fault_cfsr);
  if (fault_hfsr) put_value("  hfsr", fault_hfsr);
  fault_cfsr = fault_hfsr = 0;
}

__attribute__((noinline, section(".data.code"))) static int32_t divide_in_ram(int32_t value, int32_t by) {
  __asm volatile("sdiv %0, %0, %1" : "+r"(value) : "r"(by));
  return value;
}

/* 5 where it is skipped; ``flag`` decides. The quotient is 9 where nothing was stored to it. */
#define CONDITIONAL(flag, by, value, then) \
  __asm volatile( \
      "mov %0, #9\n mov %1, #5\n cmp %2, #1\n itt eq\n moveq %1, #6\n udiveq %0, %3, %4\n nop" \
      : "=&r"(value), "=&r"(then) : "r"(flag), "r"(100), "r"(by) : "cc")

int main(void) {
  uint32_t value, then;
  uart_start(115200);
  while (uart_get() < 0) {}
  __asm volatile("mov %0, #100\n sdiv %0, %0, %1" : "=&r"(value) : "r"(0));
  report("off, sdiv by 0", value);
  REG(0xE000ED24) |= 7u << 16;
  REG(0xE000ED14) |= 1u << 4;
  __asm volatile("dsb\n isb");
  __asm volatile("mov %0, #100\n sdiv %0, %0, %1" : "=&r"(value) : "r"(0));
  report("sdiv by 0", value);
  __asm volatile("mov %0, #100\n udiv %0, %0, %1" : "=&r"(value) : "r"(0));
  report("udiv by 0", value);
  put_value("at a division", (*(volatile uint16_t*)(fault_pc & ~1u) & 0xFFD0u) == 0xFB90u);
  __asm volatile("mov %0, #100\n sdiv %0, %0, %1" : "=&r"(value) : "r"(-7));
  report("sdiv by -7", value);
  CONDITIONAL(1, 0, value, then);
  put_value("then", then);
  report("in a block, by 0", value);
  CONDITIONAL(0, 0, value, then);
  put_value("then", then);
  report("in a block, skipped", value);
  CONDITIONAL(1, 7, value, then);
  put_value("then", then);
  report("in a block, by 7", value);
  report("in RAM, by 0", (uint32_t)divide_in_ram(100, 0));
  report("in RAM, by 9", (uint32_t)divide_in_ram(100, 9));
  REG(0xE000ED24) &= ~(7u << 16);
  __asm volatile("mov %0, #100\n udiv %0, %0, %1" : "=&r"(value) : "r"(0));
  report("no UsageFault, by 0", value);
  REG(0xE000ED14) &= ~(1u << 4);
  __asm volatile("dsb\n isb\n mov %0, #100\n udiv %0, %0, %1" : "=&r"(value) : "r"(0));
  report("off again, by 0", value);
  put_text("done\n");
  for (;;) {}
}
