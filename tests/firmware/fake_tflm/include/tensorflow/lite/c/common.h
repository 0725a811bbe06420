// A fake: same names as TFLM's common.h, only what the firmware touches. See README.md.
#pragma once
#include <cstddef>
#include <cstdint>

enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };
enum TfLiteType { kTfLiteNoType = 0, kTfLiteFloat32 = 1, kTfLiteInt8 = 9 };
struct TfLiteIntArray {
  int size;
  int data[1];
};
union TfLitePtrUnion {
  char* raw;
  void* data;
};
struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
};
struct TfLiteQuantization {
  int type;
  void* params;
};
struct TfLiteAffineQuantization {
  void* scale;
  void* zero_point;
  int32_t quantized_dimension;
};
struct TfLiteTensor {
  TfLiteQuantization quantization;
  TfLiteQuantizationParams params;
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  size_t bytes;
  TfLiteType type;
};
struct TfLiteEvalTensor {
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteType type;
};
struct TfLiteContext {
  void* impl_;
  TfLiteEvalTensor* (*GetEvalTensor)(const TfLiteContext* context, int tensor_index);
};
struct TfLiteNode {
  void* user_data;
};
struct TFLMRegistration {
  const char* custom_name;
  int builtin_code;
};
