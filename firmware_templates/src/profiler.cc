#include "profiler.h"

#include "cycles.h"

namespace harness {

void EventProfiler::start() {
  seen_ = 0;
  on_ = true;
}

uint32_t EventProfiler::BeginEvent(const char* tag) {
  if (!on_) return kCapacity;
  const uint16_t handle = seen_;
  if (seen_ < 0xFFFF) ++seen_;
  if (handle >= kCapacity) return kCapacity;
  events_[handle].tag = tag;
  events_[handle].cycles = static_cast<uint32_t>(cycles());
  return handle;
}

void EventProfiler::EndEvent(uint32_t handle) {
  if (!on_ || handle >= kCapacity) return;
  events_[handle].cycles = static_cast<uint32_t>(cycles()) - events_[handle].cycles;
}

}  // namespace harness
