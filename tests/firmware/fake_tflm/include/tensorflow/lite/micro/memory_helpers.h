// A fake. See README.md.
#pragma once
#include "tensorflow/lite/c/common.h"
namespace tflite {
TfLiteStatus TfLiteEvalTensorByteLength(const TfLiteEvalTensor* tensor, size_t* bytes);
}  // namespace tflite
