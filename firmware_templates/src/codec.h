// Writes and reads the fields of a payload: little-endian, packed, never past the end.
#pragma once

#include <cstdint>
#include <cstring>

namespace harness {

class Writer {
 public:
  Writer(uint8_t* begin, uint32_t size) : begin_(begin), at_(begin), end_(begin + size) {}

  template <typename T>
  void scalar(T value) {
    bytes(reinterpret_cast<const uint8_t*>(&value), sizeof(T));  // Cortex-M is little-endian
  }
  void bytes(const uint8_t* data, uint32_t size) {
    if (size > static_cast<uint32_t>(end_ - at_)) {
      overflow_ = true;
      return;
    }
    if (size != 0) memcpy(at_, data, size);
    at_ += size;
  }
  // Cut at `size`, padded with NUL; what is not printable ASCII becomes '?'.
  void text(const char* data, uint32_t size) {
    for (uint32_t i = 0; i < size; ++i) {
      char c = *data;
      if (c != '\0') {
        ++data;
        if (c < 0x20 || c > 0x7e) c = '?';
      }
      scalar(c);
    }
  }
  uint32_t size() const { return static_cast<uint32_t>(at_ - begin_); }
  bool overflow() const { return overflow_; }

 private:
  uint8_t* begin_;
  uint8_t* at_;
  uint8_t* end_;
  bool overflow_ = false;
};

class Reader {
 public:
  Reader(const uint8_t* begin, uint32_t size) : at_(begin), end_(begin + size) {}

  template <typename T>
  void scalar(T* value) {
    if (sizeof(T) > left()) {
      short_ = true;
      memset(value, 0, sizeof(T));
      return;
    }
    memcpy(value, at_, sizeof(T));
    at_ += sizeof(T);
  }
  void blob(const uint8_t** data, uint8_t* count) {
    scalar(count);
    *data = at_;
    if (*count > left()) {
      short_ = true;
      *count = 0;
      return;
    }
    at_ += *count;
  }
  // False when the payload ended inside a field. Bytes left over belong to a later minor version.
  bool complete() const { return !short_; }

 private:
  uint32_t left() const { return static_cast<uint32_t>(end_ - at_); }
  const uint8_t* at_;
  const uint8_t* end_;
  bool short_ = false;
};

}  // namespace harness
