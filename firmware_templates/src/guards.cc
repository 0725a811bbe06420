#include <cstring>

#include "arena.h"

namespace harness {
namespace {

// Differs from byte to byte and from the fill, so that neither a copy nor a fill of the neighbourhood looks intact.
inline uint8_t pattern(uint32_t address) { return static_cast<uint8_t>(0x5A ^ address); }

inline uint32_t pattern_word(uint32_t address) {
  const uint32_t low = address & 0xFF;  // a multiple of 4: the bytes' addresses do not carry
  return 0x5A5A5A5Au ^ (low * 0x01010101u + 0x03020100u);
}

void write_guard(uint8_t* begin, uint8_t* end) {
  uint32_t address = reinterpret_cast<uint32_t>(begin);
  const uint32_t last = reinterpret_cast<uint32_t>(end);
  while (address < last && (address & 3) != 0) {
    *reinterpret_cast<uint8_t*>(address) = pattern(address);
    ++address;
  }
  for (; address + 4 <= last; address += 4) *reinterpret_cast<uint32_t*>(address) = pattern_word(address);
  for (; address < last; ++address) *reinterpret_cast<uint8_t*>(address) = pattern(address);
}

// The first byte that differs, or `end`.
const uint8_t* first_damage(const uint8_t* begin, const uint8_t* end) {
  uint32_t address = reinterpret_cast<uint32_t>(begin);
  const uint32_t last = reinterpret_cast<uint32_t>(end);
  for (; address < last; ++address) {
    if ((address & 3) == 0) {
      while (address + 4 <= last && *reinterpret_cast<const uint32_t*>(address) == pattern_word(address)) address += 4;
      if (address >= last) break;
    }
    if (*reinterpret_cast<const uint8_t*>(address) != pattern(address)) return reinterpret_cast<uint8_t*>(address);
  }
  return end;
}

}  // namespace

void prepare_arena(uint32_t size) {
  write_guard(kArenaBase - kGuardBytes, kArenaBase);
  memset(kArenaBase, kArenaFill, size);
  write_guard(kArenaBase + size, kArenaBase + kArenaCapacity + kGuardBytes);
}

bool guards_intact(uint32_t size, int32_t* offset) {
  const uint8_t* bad = first_damage(kArenaBase - kGuardBytes, kArenaBase);
  if (bad == kArenaBase) {
    const uint8_t* end = kArenaBase + kArenaCapacity + kGuardBytes;
    bad = first_damage(kArenaBase + size, end);
    if (bad == end) return true;
  }
  *offset = static_cast<int32_t>(bad - kArenaBase);
  return false;
}

}  // namespace harness
