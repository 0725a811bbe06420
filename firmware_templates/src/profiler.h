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
  enum class Moment : uint8_t { kBefore, kAfter };  // the operator runs
  using Digest = uint64_t (*)(uint16_t operator_index);

  uint32_t BeginEvent(const char* tag) override;
  void EndEvent(uint32_t handle) override;

  // Off, both calls return at once: the timed runs pay two calls per operator.
  void start() { listen(Mode::kTimes); }
  // Events inside an operator (those of the subgraphs that it calls) belong to it.
  void trace(Digest of_operator, Moment moment);
  void keep_digest(uint64_t value);
  void stop() { on_ = false; }

  uint16_t kept() const { return seen_ < kCapacity ? seen_ : kCapacity; }
  uint16_t events_kept() const { return mode_ == Mode::kTimes ? kept() : 0; }
  uint16_t digests_kept() const { return mode_ == Mode::kDigests ? kept() : 0; }
  uint16_t seen() const { return seen_; }
  const Event& event(uint16_t index) const { return kept_[index].event; }
  uint64_t digest(uint16_t index) const { return kept_[index].digest; }

 private:
  enum class Mode : uint8_t { kTimes, kDigests };
  union Kept {
    Event event;
    uint64_t digest;
  };
  // IF and WHILE within one another; what is called deeper counts to the deepest that is kept.
  static constexpr uint8_t kDepth = 8;

  void listen(Mode mode);
  void settle(uint32_t now);

  bool on_ = false;
  Mode mode_ = Mode::kTimes;  // what is kept
  Moment moment_ = Moment::kAfter;
  uint8_t depth_ = 0;
  uint16_t running_[kDepth];  // handles, the innermost last
  uint32_t since_ = 0;
  uint16_t operator_ = 0;
  uint16_t seen_ = 0;
  Digest digest_ = nullptr;
  Kept kept_[kCapacity];
};

}  // namespace harness
