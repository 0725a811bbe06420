// The link to the host. Implemented once per UART kind, in uart/, and over the debug probe in rtt.cc.
#pragma once

#include <cstdint>

namespace harness {

void start_uart();

// One byte if one has arrived. A damaged byte is dropped: the frame's CRC tells the rest.
bool uart_read(uint8_t* byte);

// Blocks until the last bit has left. `data` must be in RAM.
void uart_write(const uint8_t* data, uint32_t size);

// What the divider makes of `baud`; 0 when it is more than 2 % off or beyond the board's limit.
uint32_t uart_possible_baud(uint32_t baud);
void uart_set_baud(uint32_t baud);
uint32_t uart_baud();

}  // namespace harness
