#include "profiler.h"

#include "cycles.h"

namespace harness {

void EventProfiler::start(Digest of_operator) {
  digest_ = of_operator;
  seen_ = operator_ = depth_ = 0;
  on_ = true;
}

void EventProfiler::keep_digest(uint64_t value) {
  if (seen_ < kCapacity) kept_[seen_].digest = value;
  if (seen_ < 0xFFFF) ++seen_;
}

uint32_t EventProfiler::BeginEvent(const char* tag) {
  if (!on_) return kCapacity;
  if (digest_ != nullptr) {
    ++depth_;
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
  if (digest_ == nullptr) settle(static_cast<uint32_t>(cycles()));
  --depth_;
  if (digest_ != nullptr && depth_ == 0) keep_digest(digest_(operator_++));
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
