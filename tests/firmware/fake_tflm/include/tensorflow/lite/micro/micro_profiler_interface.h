// A fake. See README.md.
#pragma once
#include <cstdint>
namespace tflite {
class MicroProfilerInterface {
 public:
  virtual ~MicroProfilerInterface() {}
  virtual uint32_t BeginEvent(const char* tag) = 0;
  virtual void EndEvent(uint32_t event_handle) = 0;
};
}  // namespace tflite
