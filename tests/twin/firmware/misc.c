/* Commands over the UART: r self-reset, w starve the watchdog, f floating-point registers over an exception,
   h HardFault without a way back, l lock up, s store to flash, b bad EasyDMA pointer or unclocked UART. */
#include "board.h"
static volatile uint32_t hits;
static volatile uint32_t no_vectors[128] __attribute__((aligned(512)));
void on_systick(void) {
  hits++;
  __asm volatile("vmov.f32 s1, #3.0" ::: "s1");
}
static void reset_causes(void) {
#if defined(FAMILY_NRF52)
  put_value("reset", REG(0x40000400));
  REG(0x40000400) = 0xFFFFFFFF;
#elif defined(FAMILY_STM32L4)
  put_value("reset", REG(0x40021094) >> 24);
  REG(0x40021094) |= 1u << 23;
#else
  put_value("reset", REG(0x40023874) >> 24);
  REG(0x40023874) |= 1u << 24;
#endif
}
static void start_watchdog(void) {
#if defined(FAMILY_NRF52)
  REG(0x40010504) = 327; /* 10 ms */
  REG(0x40010000) = 1;
#else
  REG(0x40003000) = 0xCCCC;
  REG(0x40003000) = 0x5555;
  REG(0x40003004) = 0;
  REG(0x40003008) = 79; /* 80 * 4 / 32 kHz = 10 ms */
  REG(0x40003000) = 0xAAAA;
#endif
}
int main(void) {
  uart_start(115200);
  reset_causes();
  for (;;) {
    switch (uart_get()) {
      case 'r':
        REG(0xE000ED0C) = 0x05FA0004;
        for (;;) {}
      case 'w':
        start_watchdog();
        for (;;) {}
      case 'f': {
        REG(0xE000ED88) |= 0xFu << 20;
        REG(0xE000E014) = 50;
        REG(0xE000E018) = 0;
        uint32_t kept = 0;
        __asm volatile("vmov.f32 s1, #2.0" ::: "s1");
        REG(0xE000E010) = 7;
        while (hits < 5) {}
        REG(0xE000E010) = 0;
        __asm volatile("vmov %0, s1" : "=r"(kept));
        put_value("s1", kept);
        break;
      }
      case 'h':
        (void)REG(0x90000000);
        break;
      case 'l':
        REG(0xE000ED08) = (uint32_t)no_vectors;
        (void)REG(0x90000000);
        break;
      case 's':
#if defined(FAMILY_NRF52)
        *(volatile uint32_t*)0x80000 = 0;
#else
        *(volatile uint32_t*)0x08010000 = 0;
#endif
        put_text("stored\n");
        break;
      default:
        break;
    }
  }
}
