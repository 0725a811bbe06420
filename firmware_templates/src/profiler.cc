#include "profiler.h"

#include "cycles.h"

namespace harness {

void EventProfiler::start() {
  seen_ = 0;
  depth_ = 0;
  on_ = true;
}

uint32_t EventProfiler::BeginEvent(const char* tag) {
  if (!on_) return kCapacity;
  const uint16_t handle = seen_ < kCapacity ? seen_ : kCapacity;
  if (seen_ < 0xFFFF) ++seen_;
  if (handle < kCapacity) events_[handle] = Event{tag, 0};
  settle(static_cast<uint32_t>(cycles()));
  if (depth_ < kDepth) running_[depth_] = handle;
  ++depth_;
  return handle;
}

void EventProfiler::EndEvent(uint32_t) {
  if (!on_ || depth_ == 0) return;
  settle(static_cast<uint32_t>(cycles()));
  --depth_;
}

// What has passed since the last call is the innermost operator's.
void EventProfiler::settle(uint32_t now) {
  if (depth_ > 0) {
    const uint16_t handle = running_[(depth_ < kDepth ? depth_ : kDepth) - 1];
    if (handle < kCapacity) events_[handle].cycles += now - since_;
  }
  since_ = now;
}

}  // namespace harness
