/* One check of the core per line of output; the test holds the expected text. */
#include "board.h"

static volatile uint32_t ticks, svc_seen, pendsv_seen, order, fault_cfsr, fault_hfsr, fault_pc, fault_bfar, fault_lr;
static volatile int resume_skip;

void on_systick(void) { ticks++; }
void on_svc(void) {
  svc_seen++;
  order = order * 10 + 1;
  REG(0xE000ED04) = 1u << 28; /* PendSV, of lower priority: only after SVC returns */
  order = order * 10 + 2;
}
void on_pendsv(void) {
  pendsv_seen++;
  order = order * 10 + 3;
}

/* Notes the fault registers and goes on behind the instruction that faulted. */
void note_fault(uint32_t* frame) {
  fault_cfsr = REG(0xE000ED28);
  fault_hfsr = REG(0xE000ED2C);
  fault_bfar = REG(0xE000ED38);
  fault_pc = frame[6];
  fault_lr = frame[5];
  REG(0xE000ED28) = fault_cfsr;
  REG(0xE000ED2C) = fault_hfsr;
  uint16_t first = *(volatile uint16_t*)(frame[6] & ~1u);
  frame[6] += (first >> 11) >= 0x1D ? 4 : 2;
}
__attribute__((naked)) void on_fault(void) {
  __asm volatile("tst lr, #4\n ite eq\n mrseq r0, msp\n mrsne r0, psp\n push {r4, lr}\n bl note_fault\n pop {r4, pc}");
}
void on_usagefault(void) __attribute__((alias("on_fault")));
void on_busfault(void) __attribute__((alias("on_fault")));

static volatile float one = 1.0f, two = 2.0f;

static void report_fault(const char* name) {
  put_text(name);
  put_value(" cfsr", fault_cfsr);
  put_value(" hfsr", fault_hfsr);
}

int main(void) {
  uart_start(115200);
  /* FPU off: the first floating-point instruction is a UsageFault (NOCP), escalated to HardFault */
  fault_cfsr = 0;
  __asm volatile("vmov.f32 s0, #1.0");
  report_fault("fpu off");
  REG(0xE000ED88) |= 0xFu << 20;
  __asm volatile("dsb\n isb");
  fault_cfsr = 0;
  put_value("fpu sum x16", (uint32_t)((one + two) * 16.0f));
  put_value("fpu on cfsr", fault_cfsr);
  /* undefined instruction, as a HardFault and then as a UsageFault of its own */
  __asm volatile(".inst.n 0xde00");
  report_fault("undefined");
  REG(0xE000ED24) |= 7u << 16;
  __asm volatile(".inst.n 0xde00");
  report_fault("undefined enabled");
  /* nobody answers at 0x90000000 */
  (void)REG(0x90000000);
  report_fault("bus");
  put_value("bfar", fault_bfar);
  /* SVC before PendSV */
  REG(0xE000ED20) = 0xF0u << 16;
  __asm volatile("svc #7");
  __asm volatile("dsb\n isb");
  put_value("svc", svc_seen);
  put_value("pendsv", pendsv_seen);
  put_value("order", order);
  /* SysTick every 1000 instructions */
  REG(0xE000E014) = 999;
  REG(0xE000E018) = 0;
  REG(0xE000E010) = 7;
  while (ticks < 10) {}
  REG(0xE000E010) = 0;
  put_value("ticks", ticks);
  /* PRIMASK holds it back, WFI wakes all the same */
  ticks = 0;
  __asm volatile("cpsid i");
  REG(0xE000E018) = 0;
  REG(0xE000E010) = 7;
  __asm volatile("wfi");
  uint32_t masked = ticks;
  __asm volatile("cpsie i\n nop\n nop");
  put_value("masked", masked);
  put_value("unmasked", ticks > 0);
  REG(0xE000E010) = 0;
  /* DWT counts */
  REG(0xE000EDFC) |= 1u << 24;
  REG(0xE0001FB0) = 0xC5ACCE55; /* the M7's lock */
  REG(0xE0001004) = 0;
  REG(0xE0001000) |= 1;
  uint32_t before = REG(0xE0001004);
  for (volatile int i = 0; i < 100; i++) {}
  uint32_t after = REG(0xE0001004);
  put_value("dwt moved", after - before > 300 && after - before < 2000);
  /* PSP: an exception on the process stack comes back to it */
  static uint32_t process_stack[64];
  __asm volatile("msr psp, %0\n mov r0, #2\n msr control, r0\n isb\n svc #1\n mrs r1, control\n mov r0, #0\n msr control, r0\n isb" ::"r"(process_stack + 64) : "r0", "r1", "memory");
  put_value("svc on psp", svc_seen);
  put_text("done\n");
  for (;;) {}
}
