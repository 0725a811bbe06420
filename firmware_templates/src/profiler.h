// Keeps TFLM's profiler events of one Invoke.
#pragma once

#include <cstdint>

#include "tensorflow/lite/micro/micro_profiler_interface.h"

namespace harness {

class EventProfiler : public tflite::MicroProfilerInterface {
 public:
  static constexpr uint16_t kCapacity = HARNESS_PROFILE_EVENTS;

  struct Event {
    const char* tag;
    uint32_t cycles;  // one operator, without those of the subgraphs that it calls: less than 2^32
  };

  uint32_t BeginEvent(const char* tag) override;
  void EndEvent(uint32_t handle) override;

  // Off, both calls return at once: the timed runs pay two calls per operator.
  void start();
  void stop() { on_ = false; }

  uint16_t kept() const { return seen_ < kCapacity ? seen_ : kCapacity; }
  uint16_t seen() const { return seen_; }
  const Event& event(uint16_t index) const { return events_[index]; }

 private:
  // IF and WHILE within one another; what is called deeper counts to the deepest that is kept.
  static constexpr uint8_t kDepth = 8;

  void settle(uint32_t now);

  bool on_ = false;
  uint8_t depth_ = 0;
  uint16_t running_[kDepth];  // handles, the innermost last
  uint32_t since_ = 0;
  uint16_t seen_ = 0;
  Event events_[kCapacity];
};

}  // namespace harness
