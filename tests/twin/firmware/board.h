/* Bare-metal start for the twin's tests: registers only, no vendor headers. The family is given by -DFAMILY_... */
#ifndef BOARD_H
#define BOARD_H
#include <stdint.h>
#define REG(address) (*(volatile uint32_t*)(address))

extern uint32_t _stack_top, _data_load, _data, _edata, _bss, _ebss;
int main(void);
void uart_init(uint32_t baud);

#if defined(FAMILY_STM32F7)
#define CLOCK_HZ 16000000u
static inline void uart_pins(void) {
  REG(0x40023830) |= 1u << 3; /* GPIOD */
  REG(0x40023840) |= 1u << 18; /* USART3 */
  REG(0x40020C00) = (REG(0x40020C00) & ~(0xFu << 16)) | (0xAu << 16);
  REG(0x40020C24) = (REG(0x40020C24) & ~0xFFu) | 0x77u;
}
#define UART 0x40004800u
#define UART_V2 1
#elif defined(FAMILY_STM32L4)
#define CLOCK_HZ 4000000u
static inline void uart_pins(void) {
  REG(0x4002104C) |= 1u;
  REG(0x40021058) |= 1u << 17;
  REG(0x48000000) = (REG(0x48000000) & ~(0xFu << 4)) | (0xAu << 4);
  REG(0x48000020) = (REG(0x48000020) & ~(0xFFu << 8)) | (0x77u << 8);
}
#define UART 0x40004400u
#define UART_V2 1
#elif defined(FAMILY_STM32F4)
#define CLOCK_HZ 16000000u
static inline void uart_pins(void) {
  REG(0x40023830) |= 1u;
  REG(0x40023840) |= 1u << 17;
  REG(0x40020000) = (REG(0x40020000) & ~(0xFu << 4)) | (0xAu << 4);
  REG(0x40020020) = (REG(0x40020020) & ~(0xFFu << 8)) | (0x77u << 8);
}
#define UART 0x40004400u
#define UART_V2 0
#endif

#if defined(FAMILY_NRF52) || defined(FAMILY_NRF53)
#define CLOCK_HZ 64000000u
#define UARTE 0x40002000u
static volatile uint8_t uart_buffer[64];
static volatile uint8_t uart_in;
static inline void uart_start(uint32_t baud) {
  (void)baud;
  REG(0x40000000) = 1; /* the crystal */
  while (!REG(0x40000100)) {}
  REG(UARTE + 0x50C) = 6;
  REG(UARTE + 0x514) = 8;
  REG(UARTE + 0x524) = 0x01D60000; /* 115200 */
  REG(UARTE + 0x500) = 8;
  REG(UARTE + 0x534) = (uint32_t)&uart_in;
  REG(UARTE + 0x538) = 1;
  REG(UARTE + 0x000) = 1;
}
static inline void uart_put(uint8_t byte) {
  uart_buffer[0] = byte;
  REG(UARTE + 0x544) = (uint32_t)uart_buffer;
  REG(UARTE + 0x548) = 1;
  REG(UARTE + 0x120) = 0;
  REG(UARTE + 0x008) = 1;
  while (!REG(UARTE + 0x120)) {}
}
static inline int uart_get(void) {
  if (!REG(UARTE + 0x110)) return -1;
  REG(UARTE + 0x110) = 0;
  int byte = uart_in;
  REG(UARTE + 0x000) = 1;
  return byte;
}
#else
static inline void uart_start(uint32_t baud) {
  uart_pins();
#if UART_V2
  REG(UART + 0x0C) = CLOCK_HZ / baud;
  REG(UART + 0x00) = 0x0D;
#else
  REG(UART + 0x08) = CLOCK_HZ / baud;
  REG(UART + 0x0C) = 0x200C;
#endif
}
static inline void uart_put(uint8_t byte) {
#if UART_V2
  while (!(REG(UART + 0x1C) & 0x80)) {}
  REG(UART + 0x28) = byte;
#else
  while (!(REG(UART + 0x00) & 0x80)) {}
  REG(UART + 0x04) = byte;
#endif
}
static inline int uart_get(void) {
#if UART_V2
  return REG(UART + 0x1C) & 0x20 ? (int)(REG(UART + 0x24) & 0xFF) : -1;
#else
  return REG(UART + 0x00) & 0x20 ? (int)(REG(UART + 0x04) & 0xFF) : -1;
#endif
}
#endif

static inline void put_text(const char* text) {
  while (*text) uart_put((uint8_t)*text++);
}
static inline void put_hex(uint32_t value) {
  for (int shift = 28; shift >= 0; shift -= 4) uart_put((uint8_t)"0123456789abcdef"[(value >> shift) & 15]);
}
static inline void put_value(const char* name, uint32_t value) {
  put_text(name);
  uart_put('=');
  put_hex(value);
  uart_put('\n');
}
#endif
