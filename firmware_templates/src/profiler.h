// Listens to TFLM's profiler events during one Invoke: either how long each took, or what is in memory at each operator of
// the main subgraph.
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
  using Digest = uint64_t (*)(uint16_t operator_index);

  uint32_t BeginEvent(const char* tag) override;
  void EndEvent(uint32_t handle) override;

  // Off, both calls return at once: the timed runs pay two calls per operator. With `digest` the digest of each operator
  // is kept when it ends, instead of times. What happens inside of it (in the subgraphs that it calls) belongs to it.
  void start(Digest digest = nullptr);
  void keep_digest(uint64_t value);
  void stop() { on_ = false; }

  uint16_t kept() const { return seen_ < kCapacity ? seen_ : kCapacity; }
  uint16_t events_kept() const { return digest_ == nullptr ? kept() : 0; }
  uint16_t digests_kept() const { return digest_ != nullptr ? kept() : 0; }
  uint16_t seen() const { return seen_; }
  const Event& event(uint16_t index) const { return kept_[index].event; }
  const uint64_t* digests() const { return &kept_[0].digest; }

 private:
  union Kept {
    Event event;
    uint64_t digest;
  };
  static_assert(sizeof(Kept) == sizeof(uint64_t), "digests lie one behind the other");
  // IF and WHILE within one another; what is called deeper counts to the deepest that is kept.
  static constexpr uint8_t kDepth = 8;

  void settle(uint32_t now);

  bool on_ = false;
  uint8_t depth_ = 0;
  uint16_t running_[kDepth];  // handles, the innermost last
  uint32_t since_ = 0;
  uint16_t operator_ = 0;
  uint16_t seen_ = 0;
  Digest digest_ = nullptr;  // null: times are kept
  Kept kept_[kCapacity];
};

}  // namespace harness
