// L1 caches of the core: Cortex-M7. DDI 0489F; PM0253 4.8.
#pragma once

#include <cstdint>

#include "board.h"
#include "registers.h"

namespace harness {

inline void start_caches() {
  if (!kStartCaches) return;
  if (kHasInstructionCache) {
    barrier();
    reg(scs::kIciallu) = 0;
    barrier();
    reg(scs::kCcr) = reg(scs::kCcr) | (1u << 17);
    barrier();
  }
  if (kHasDataCache) {
    reg(scs::kCsselr) = 0;
    barrier();
    const uint32_t geometry = reg(scs::kCcsidr);
    const uint32_t sets = (geometry >> 13) & 0x7FFFu;
    const uint32_t ways = (geometry >> 3) & 0x3FFu;
    // Set in bits 5 and up (32-byte lines), way from bit 31 down: four ways on the Cortex-M7.
    for (uint32_t set = 0; set <= sets; ++set) {
      for (uint32_t way = 0; way <= ways; ++way) reg(scs::kDcisw) = (set << 5) | (way << 30);
    }
    barrier();
    reg(scs::kCcr) = reg(scs::kCcr) | (1u << 16);
    barrier();
  }
}

// 0 off, 1 on, 255 not present.
inline uint8_t instruction_cache_state() {
  return kHasInstructionCache ? static_cast<uint8_t>((reg(scs::kCcr) >> 17) & 1u) : 255;
}
inline uint8_t data_cache_state() {
  return kHasDataCache ? static_cast<uint8_t>((reg(scs::kCcr) >> 16) & 1u) : 255;
}

}  // namespace harness
