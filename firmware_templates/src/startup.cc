// From reset to main: FPU, stack paint, memory, clocks, caches, constructors.
#include <cstdint>

#include "board.h"
#include "caches.h"
#include "clock.h"
#include "faults.h"
#include "link_symbols.h"
#include "registers.h"
#include "stack.h"
#include "wire.h"

extern "C" {
[[noreturn]] void harness_start();
[[noreturn]] void harness_main();
[[noreturn]] void harness_fault(const uint32_t* frame, uint32_t exception);
void harness_systick(const uint32_t* frame);

// The FPU first: a constructor, or the compiler's own code, may already use its registers (VMOV in a copy loop).
__attribute__((naked, used)) void Reset_Handler() {
  asm volatile(
      "cpsid i\n"
      "ldr r0, =_estack\n"
      "mov sp, r0\n"
#if HARNESS_HAS_STACK_LIMIT
      "ldr r0, =__stack_limit\n"
      "msr msplim, r0\n"
#endif
#if HARNESS_HAS_FPU
      "ldr r0, =0xE000ED88\n"  // CPACR: full access to CP10 and CP11
      "ldr r1, [r0]\n"
      "orr r1, r1, #0xF00000\n"
      "str r1, [r0]\n"
      "dsb\n"
      "isb\n"
#endif
      "b harness_start\n");
}

// The faulting stack pointer may point anywhere, so the handler leaves it and runs on a fresh stack; it never returns.
__attribute__((naked, used)) void Fault_Handler() {
  asm volatile(
      "tst lr, #4\n"
      "ite eq\n"
      "mrseq r0, msp\n"
      "mrsne r0, psp\n"
      "mrs r1, ipsr\n"
      "ldr r2, =_estack\n"
      "msr msp, r2\n"
      "b harness_fault\n");
}

__attribute__((naked, used)) void SysTick_Handler() {
  asm volatile(
      "mrs r0, msp\n"
      "b harness_systick\n");
}

// Every exception that this firmware does not use ends as a fault with its number in the record.
__attribute__((section(".vectors"), used)) void (*const g_vectors[16 + HARNESS_INTERRUPTS])() = {
    reinterpret_cast<void (*)()>(_estack),
    Reset_Handler,
    Fault_Handler,  // NMI
    Fault_Handler,  // HardFault
    Fault_Handler,  // MemManage
    Fault_Handler,  // BusFault
    Fault_Handler,  // UsageFault
    Fault_Handler,  // SecureFault on ARMv8-M
    nullptr,
    nullptr,
    nullptr,
    Fault_Handler,  // SVCall
    Fault_Handler,  // DebugMonitor
    nullptr,
    Fault_Handler,  // PendSV
    SysTick_Handler,
};

// Beside the vectors, in the piece of flash that any other program rewrites: harness knows its own firmware by it.
__attribute__((section(".vectors.mark"), used)) const char g_mark[] = HARNESS_BOOT_LINE_PREFIX;
}

[[noreturn]] void harness_start() {
  harness::prepare_chip();  // before anything else touches the memories it switches on
  for (uint32_t *from = __data_load, *to = __data_start; to < __data_end;) *to++ = *from++;
  for (uint32_t* word = __bss_start; word < __bss_end;) *word++ = 0;
  harness::paint_stack();
  harness::reg(harness::scs::kVtor) = reinterpret_cast<uint32_t>(g_vectors);
  harness::start_faults();
  harness::start_clock();
  harness::start_caches();
  for (void (**init)() = __init_array_start; init < __init_array_end; ++init) (*init)();
  harness_main();
}
