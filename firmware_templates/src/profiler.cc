#include "profiler.h"

#include "cycles.h"

namespace harness {

void EventProfiler::listen(Mode mode) {
  mode_ = mode;
  seen_ = operator_ = depth_ = 0;
  on_ = true;
}

void EventProfiler::trace(Digest of_operator, Moment moment) {
  digest_ = of_operator;
  moment_ = moment;
  listen(Mode::kDigests);
}

void EventProfiler::keep_digest(uint64_t value) {
  if (seen_ < kCapacity) kept_[seen_].digest = value;
  if (seen_ < 0xFFFF) ++seen_;
}

uint32_t EventProfiler::BeginEvent(const char* tag) {
  if (!on_) return kCapacity;
  if (mode_ == Mode::kDigests) {
    if (depth_++ == 0 && moment_ == Moment::kBefore) keep_digest(digest_(operator_));
    return kCapacity;
  }
  const uint16_t handle = seen_ < kCapacity ? seen_ : kCapacity;
  if (seen_ < 0xFFFF) ++seen_;
  if (handle < kCapacity) kept_[handle].event = Event{tag, 0};
  settle(static_cast<uint32_t>(cycles()));
  if (depth_ < kDepth) running_[depth_] = handle;
  ++depth_;
  return handle;
}

void EventProfiler::EndEvent(uint32_t) {
  if (!on_ || depth_ == 0) return;
  if (mode_ == Mode::kTimes) {
    settle(static_cast<uint32_t>(cycles()));
    --depth_;
    return;
  }
  if (--depth_ != 0) return;
  if (moment_ == Moment::kAfter) keep_digest(digest_(operator_));
  ++operator_;
}

// What has passed since the last call is the innermost operator's.
void EventProfiler::settle(uint32_t now) {
  if (depth_ > 0) {
    const uint16_t handle = running_[(depth_ < kDepth ? depth_ : kDepth) - 1];
    if (handle < kCapacity) kept_[handle].event.cycles += now - since_;
  }
  since_ = now;
}

}  // namespace harness
