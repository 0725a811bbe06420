#include "board.h"

__attribute__((naked, noreturn)) static void reset(void) { __asm volatile("b begin"); }
__attribute__((weak)) void on_fault(void) { for (;;) {} }
__attribute__((weak)) void on_nmi(void) { for (;;) {} }
__attribute__((weak)) void on_memmanage(void) { for (;;) {} }
__attribute__((weak)) void on_busfault(void) { for (;;) {} }
__attribute__((weak)) void on_usagefault(void) { for (;;) {} }
__attribute__((weak)) void on_svc(void) {}
__attribute__((weak)) void on_pendsv(void) {}
__attribute__((weak)) void on_systick(void) {}
__attribute__((weak)) void on_irq(void) {}

void begin(void) {
  uint32_t* from = &_data_load;
  for (uint32_t* to = &_data; to < &_edata; ) *to++ = *from++;
  for (uint32_t* to = &_bss; to < &_ebss; ) *to++ = 0;
  main();
  for (;;) {}
}

#define IRQ8 on_irq, on_irq, on_irq, on_irq, on_irq, on_irq, on_irq, on_irq
typedef void (*Vector)(void);
__attribute__((section(".vectors"), used)) static const Vector vectors[] = {
    (Vector)&_stack_top, reset, on_nmi, on_fault, on_memmanage, on_busfault, on_usagefault, 0, 0, 0, 0,
    on_svc, 0, 0, on_pendsv, on_systick,
    IRQ8, IRQ8, IRQ8, IRQ8, IRQ8, IRQ8, IRQ8, IRQ8, IRQ8, IRQ8, IRQ8, IRQ8};
