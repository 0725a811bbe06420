// What the C and C++ libraries ask for on bare metal. There is no heap: whoever asks for one gets none.
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "faults.h"

extern "C" {

void* __dso_handle = nullptr;

[[noreturn]] void abort() {
  harness::fault_from_halt(reinterpret_cast<uint32_t>(__builtin_return_address(0)));
}
[[noreturn]] void _exit(int) {
  harness::fault_from_halt(reinterpret_cast<uint32_t>(__builtin_return_address(0)));
}
[[noreturn]] void __cxa_pure_virtual() {
  harness::fault_from_halt(reinterpret_cast<uint32_t>(__builtin_return_address(0)));
}
int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }  // nothing ever exits
int __aeabi_atexit(void*, void (*)(void*), void*) { return 0; }

void* _sbrk(ptrdiff_t) {
  errno = ENOMEM;
  return reinterpret_cast<void*>(-1);
}
int _write(int, const char*, int) { return -1; }
int _read(int, char*, int) { return -1; }
int _close(int) { return -1; }
int _lseek(int, int, int) { return -1; }
int _fstat(int, void*) { return -1; }
int _isatty(int) { return 0; }
int _kill(int, int) { return -1; }
int _getpid() { return 1; }

}  // extern "C"

void operator delete(void*) noexcept { abort(); }
void operator delete(void*, std::size_t) noexcept { abort(); }
