/* Accesses that a chip refuses. After a byte from the host, one check per line of output; the test holds the text. */
#include "board.h"

static volatile uint32_t fault_cfsr, fault_hfsr, fault_mmfar;

/* Notes the fault registers and goes on behind the instruction that faulted. */
void note_fault(uint32_t* frame) {
  fault_cfsr = REG(0xE000ED28);
  fault_hfsr = REG(0xE000ED2C);
  fault_mmfar = REG(0xE000ED34);
  REG(0xE000ED28) = fault_cfsr;
  REG(0xE000ED2C) = fault_hfsr;
  uint16_t first = *(volatile uint16_t*)(frame[6] & ~1u);
  frame[6] += (first >> 11) >= 0x1D ? 4 : 2;
}
__attribute__((naked)) void on_fault(void) {
  __asm volatile("tst lr, #4\n ite eq\n mrseq r0, msp\n mrsne r0, psp\n push {r4, lr}\n bl note_fault\n pop {r4, pc}");
}
void on_memmanage(void) __attribute__((alias("on_fault")));
void on_usagefault(void) __attribute__((alias("on_fault")));

static volatile uint32_t words[192] __attribute__((aligned(256)));

static void report(const char* name) {
  put_text(name);
  put_value(" cfsr", fault_cfsr);
  fault_cfsr = 0;
}

static void protect(uint32_t permission) {
  REG(0xE000ED94) = 0;
  REG(0xE000ED98) = 0;
  REG(0xE000ED9C) = (uint32_t)words;
  REG(0xE000EDA0) = (1u << 28) | (permission << 24) | (1u << 19) | (7u << 1) | 1u; /* 256 bytes */
  REG(0xE000ED94) = 5;
  __asm volatile("dsb\n isb");
}

int main(void) {
  uint32_t value, other, base;
  uart_start(115200);
  while (uart_get() < 0) {}
  REG(0xE000ED24) |= 7u << 16;
  REG(0xE000ED88) |= 0xFu << 20;
  __asm volatile("dsb\n isb");
  put_value("regions", REG(0xE000ED90));
  words[5] = 7;
  words[64] = 9;
  protect(0);
  __asm volatile("str %1, [%0]" ::"r"(words + 5), "r"(1) : "memory");
  report("store to no access");
  put_value("at", fault_mmfar - (uint32_t)words);
  __asm volatile("ldr %0, [%1]" : "=r"(value) : "r"(words + 6) : "memory");
  report("load from no access");
  put_value("at", fault_mmfar - (uint32_t)words);
  put_value("behind it", words[64]);
  report("behind it");
  protect(6);
  put_value("read only", words[5]);
  words[5] = 8;
  report("store to read only");
  REG(0xE000ED94) = 0;
  put_value("off", words[5]);
  report("off");
  base = (uint32_t)words + 1;
  __asm volatile("ldr %0, [%1]" : "=r"(value) : "r"(base) : "memory");
  report("unaligned ldr");
  __asm volatile("ldrd %0, %1, [%2]" : "=&r"(value), "=&r"(other) : "r"(base) : "memory");
  report("unaligned ldrd");
  __asm volatile("strd %0, %1, [%2]" ::"r"(1), "r"(2), "r"(base) : "memory");
  report("unaligned strd");
  __asm volatile("ldmia %0, {r4, r5}" ::"r"(base) : "r4", "r5", "memory");
  report("unaligned ldm");
  __asm volatile("stmia.w %0, {r4, r5}" ::"r"(base) : "r4", "r5", "memory");
  report("unaligned stm");
  __asm volatile("vldr.32 s1, [%0]" ::"r"(base) : "s1", "memory");
  report("unaligned vldr");
  __asm volatile("vstr.32 s1, [%0]" ::"r"(base) : "memory");
  report("unaligned vstr");
  __asm volatile("ldrd %0, %1, [%2]" : "=&r"(value), "=&r"(other) : "r"((uint32_t)words + 4) : "memory");
  report("ldrd on a word");
  REG(0xE000ED14) |= 1u << 3;
  __asm volatile("dsb\n isb");
  __asm volatile("ldr %0, [%1]" : "=r"(value) : "r"(base) : "memory");
  report("trapped ldr");
  __asm volatile("strh %1, [%0]" ::"r"(base), "r"(1) : "memory");
  report("trapped strh");
  __asm volatile("ldr %0, [%1]" : "=r"(value) : "r"(words) : "memory");
  report("aligned ldr");
  put_text("done\n");
  for (;;) {}
}
