/* Says hello, then echoes each byte three times. */
#include "board.h"
static volatile uint32_t counted = 0x1234;
int main(void) {
  uart_start(115200);
  put_text("hello from the twin\n");
  put_value("data", counted);
  for (;;) {
    int byte = uart_get();
    if (byte < 0) continue;
    for (int i = 0; i < 3; i++) uart_put((uint8_t)byte);
  }
}
