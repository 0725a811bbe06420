/* What the MPU and the default memory map forbid. No UART: the checks' results stand in RAM, the test reads them. */
#include "board.h"

struct result {
  uint32_t cfsr, hfsr, mmfar, pc, value;
};
volatile struct result results[24] __attribute__((used));
volatile uint32_t done __attribute__((used));
static volatile struct result now;
static volatile uint32_t count, look_at;

/* Notes the fault. A call that could not be fetched returns to its caller; a load or store is passed over. */
void note_fault(uint32_t* frame) {
  now.cfsr = REG(0xE000ED28);
  now.hfsr = REG(0xE000ED2C);
  now.mmfar = REG(0xE000ED34);
  now.pc = frame[6];
  REG(0xE000ED28) = now.cfsr;
  REG(0xE000ED2C) = now.hfsr;
  if (look_at) now.value = REG(look_at);
  if (now.cfsr & 0x101) {
    frame[6] = frame[5] & ~1u;
    frame[7] |= 1u << 24;
  } else {
    frame[6] += (*(volatile uint16_t*)(frame[6] & ~1u) >> 11) >= 0x1D ? 4 : 2;
  }
}
__attribute__((naked)) void on_fault(void) {
  __asm volatile("tst lr, #4\n ite eq\n mrseq r0, msp\n mrsne r0, psp\n push {r4, lr}\n bl note_fault\n pop {r4, pc}");
}
void on_memmanage(void) __attribute__((alias("on_fault")));
void on_busfault(void) __attribute__((alias("on_fault")));
void on_usagefault(void) __attribute__((alias("on_fault")));

static void keep(void) {
  volatile struct result* to = &results[count++];
  to->cfsr = now.cfsr;
  to->hfsr = now.hfsr;
  to->mmfar = now.mmfar;
  to->pc = now.pc;
  to->value = now.value;
  now.cfsr = now.hfsr = now.mmfar = now.pc = now.value = 0;
}

#define READ_WRITE 3u
#define READ_ONLY 6u
static void region(uint32_t number, uint32_t base, uint32_t size, uint32_t rights, uint32_t never) {
  REG(0xE000ED98) = number;
#if defined(FAMILY_NRF53)
  REG(0xE000ED9C) = base | (rights == READ_ONLY ? 4u : 0u) | never;
  REG(0xE000EDA0) = (base + size - 32) | 1u;
#else
  REG(0xE000ED9C) = base;
  REG(0xE000EDA0) = (never << 28) | (rights << 24) | ((31u - __builtin_clz(size) - 1u) << 1) | 1u;
#endif
}
static void mpu(uint32_t control) {
  REG(0xE000ED94) = control;
  __asm volatile("dsb\n isb");
}
static void clear(void) {
  mpu(0);
  for (uint32_t n = 0; n < 8; ++n) {
    REG(0xE000ED98) = n;
    REG(0xE000EDA0) = 0;
  }
}

static uint16_t code[16] __attribute__((aligned(32))) = {0x202A, 0x4770}; /* movs r0, #42; bx lr */
static volatile uint32_t words[16] __attribute__((aligned(32)));

static void call(uint32_t address) {
  register uint32_t r0 __asm("r0") = 0;
  __asm volatile("blx %1" : "+r"(r0) : "r"(address | 1) : "lr", "r1", "r2", "r3", "memory");
  if (!now.cfsr) now.value = r0;
  keep();
}
static void load(uint32_t address) {
  uint32_t value = 0;
  __asm volatile("ldr %0, [%1]" : "+r"(value) : "r"(address) : "memory");
  if (!now.cfsr) now.value = value;
  keep();
}
static void store(uint32_t address) {
  __asm volatile("str %1, [%0]" ::"r"(address), "r"(1) : "memory");
  keep();
}

int main(void) {
  const uint32_t ram = 0x20000000u, ram_size = (uint32_t)&_stack_top - ram;
  const uint32_t flash = (uint32_t)&_data_load & 0xFFF00000u;
  REG(0xE000ED24) |= 7u << 16;
  words[0] = 7;

  call((uint32_t)code); /* 0: the MPU is off */
  region(0, (uint32_t)code, 32, READ_WRITE, 1);
  mpu(5);
  call((uint32_t)code); /* 1: execute never */
  load((uint32_t)code); /* 2: but it may be read */
  region(0, (uint32_t)code, 32, READ_WRITE, 0);
  call((uint32_t)code); /* 3 */

  clear(); /* no background: flash is code, RAM is data */
  region(0, flash, 0x100000, READ_ONLY, 0);
  region(1, ram, ram_size, READ_WRITE, 1);
  mpu(1);
  load((uint32_t)words);     /* 4 */
  load(0x40003000);          /* 5: no region */
  store(0x40003000);         /* 6 */
  load(0xE000ED00);          /* 7: the private peripheral bus is not the MPU's */
  store(flash);              /* 8: read only */
  call((uint32_t)code);      /* 9: RAM is data */
  REG(0xE000ED24) = 0;       /* no MemManage: HardFault, above which the MPU rests */
  look_at = (uint32_t)words; /* ... */
  region(1, ram, ram_size, READ_WRITE, 1);
  call((uint32_t)code); /* 10 */
  REG(0xE000ED24) = 7u << 16;
  look_at = 0;
  region(2, (uint32_t)words, 32, READ_ONLY, 1); /* lies within region 1: the higher decides, or two are too many */
  store((uint32_t)words);                       /* 11 */
  load((uint32_t)words);                        /* 12 */

  clear();
  call(0x40000000); /* 13: peripherals */
  call(0xA0000000); /* 14: external devices */
  call(0xE000E000); /* 15: System */
  call(0xFFFFFFF0); /* 16: in Thread mode no exception return */
  call(0x90000000); /* 17: external RAM, of which there is none */
  call((uint32_t)code); /* 18 */
  done = count;
  for (;;) {}
}
