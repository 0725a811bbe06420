// What the linker script tells: addresses of symbols, not values.
#pragma once

#include <cstdint>

extern "C" {
extern uint32_t __data_load[];
extern uint32_t __data_start[];
extern uint32_t __data_end[];
extern uint32_t __bss_start[];
extern uint32_t __bss_end[];
extern uint32_t __stack_limit[];  // lowest word of the stack
extern uint32_t _estack[];        // one past the highest
extern uint8_t __stack_guard[];
extern uint8_t __spare_start[];  // RAM that nothing was linked into: staged inputs
extern uint8_t __spare_end[];
extern uint8_t __flash_used[];  // its address is the number of bytes
extern uint8_t __ram_used[];
extern void (*__init_array_start[])();
extern void (*__init_array_end[])();
}
