#include "session.h"
#include "tensorflow/lite/c/builtin_op_data.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"

namespace harness {
namespace {

struct Row {
  const char* name;
  uint16_t size;
  uint8_t alignment;
};

const Row kRows[] = {
#define SIZE(name, type) {name, sizeof(type), alignof(type)},
#include "sizes.inc"
#undef SIZE
};
constexpr uint16_t kRowCount = sizeof(kRows) / sizeof(kRows[0]);

}  // namespace

Sizes struct_sizes(uint16_t first, SizeRow* rows) {
  Sizes answer = {};
  answer.first = first;
  answer.total = kRowCount;
  answer.rows = rows;
  for (uint16_t i = first; i < kRowCount && answer.rows_count < kMaxSizeRows; ++i) {
    rows[answer.rows_count++] = SizeRow{kRows[i].name, kRows[i].size, kRows[i].alignment};
  }
  return answer;
}

}  // namespace harness
