// A fake. See README.md.
#pragma once
namespace tflite {
struct Model;
inline const Model* GetModel(const void* data) { return static_cast<const Model*>(data); }
}  // namespace tflite
