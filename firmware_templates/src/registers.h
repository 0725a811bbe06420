// Registers of the core. Arm: ARMv7-M ARM (DDI 0403E) B3.2, C1.8; ARMv8-M ARM (DDI 0553).
#pragma once

#include <cstdint>

namespace harness {

inline volatile uint32_t& reg(uint32_t address) { return *reinterpret_cast<volatile uint32_t*>(address); }

// A read for its effect: a clock that was just switched on needs it before the first access behind it.
inline void read_back(uint32_t address) {
  const uint32_t value = reg(address);
  (void)value;
}

namespace scs {
constexpr uint32_t kSystickControl = 0xE000E010;
constexpr uint32_t kSystickReload = 0xE000E014;
constexpr uint32_t kSystickValue = 0xE000E018;
constexpr uint32_t kIcsr = 0xE000ED04;
constexpr uint32_t kVtor = 0xE000ED08;
constexpr uint32_t kAircr = 0xE000ED0C;
constexpr uint32_t kCcr = 0xE000ED14;
constexpr uint32_t kShpr3 = 0xE000ED20;
constexpr uint32_t kShcsr = 0xE000ED24;
constexpr uint32_t kCfsr = 0xE000ED28;
constexpr uint32_t kHfsr = 0xE000ED2C;
constexpr uint32_t kMmfar = 0xE000ED34;
constexpr uint32_t kBfar = 0xE000ED38;
constexpr uint32_t kCcsidr = 0xE000ED80;
constexpr uint32_t kCsselr = 0xE000ED84;
constexpr uint32_t kCpacr = 0xE000ED88;
constexpr uint32_t kMpuControl = 0xE000ED94;
constexpr uint32_t kMpuNumber = 0xE000ED98;
constexpr uint32_t kMpuBase = 0xE000ED9C;
constexpr uint32_t kMpuAttributes = 0xE000EDA0;
constexpr uint32_t kDemcr = 0xE000EDFC;
constexpr uint32_t kIciallu = 0xE000EF50;
constexpr uint32_t kDcisw = 0xE000EF60;
constexpr uint32_t kDccmvac = 0xE000EF68;
}  // namespace scs

namespace dwt {
constexpr uint32_t kControl = 0xE0001000;
constexpr uint32_t kCycleCount = 0xE0001004;
constexpr uint32_t kLockAccess = 0xE0001FB0;
constexpr uint32_t kLockStatus = 0xE0001FB4;
}  // namespace dwt

inline void barrier() { asm volatile("dsb\n isb" ::: "memory"); }

// Disables interrupts while it lives, so that a pair of words is read as one.
class NoInterrupts {
 public:
  NoInterrupts() { asm volatile("mrs %0, primask\n cpsid i" : "=r"(primask_)::"memory"); }
  ~NoInterrupts() { asm volatile("msr primask, %0" ::"r"(primask_) : "memory"); }
  NoInterrupts(const NoInterrupts&) = delete;
  NoInterrupts& operator=(const NoInterrupts&) = delete;

 private:
  uint32_t primask_;
};

// Repeats until `condition` holds; false when it did not within `tries`. No wait in this firmware is endless.
template <typename Condition>
inline bool wait_until(Condition condition, uint32_t tries = 1000000) {
  while (tries-- != 0) {
    if (condition()) return true;
  }
  return false;
}

}  // namespace harness
