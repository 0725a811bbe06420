// What this image is. Rendered: build_info.cc.
#pragma once

#include <cstdint>

#include "wire.h"

namespace harness {

extern const uint8_t kBuildId[16];
extern const char kBuildIdText[];
extern const uint8_t kModelSha256[32];
extern const char kBoardName[];
extern const char kTflmCommit[];
extern const char kCompiler[];
extern const char kOptimisation[];
extern const char kArenaRegion[];
extern const KernelSet kKernels;
extern const bool kHasProfilerEvents;  // TFLM sends none when built with TF_LITE_STRIP_ERROR_STRINGS
extern const uint32_t kWatchdogSeconds;

}  // namespace harness
