// A fake. See README.md.
#pragma once
#include "tensorflow/lite/c/common.h"
namespace tflite {
class MicroOpResolver {
 public:
  virtual unsigned int size() const = 0;
  virtual ~MicroOpResolver() {}
};
}  // namespace tflite
