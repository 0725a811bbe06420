#include "frames.h"

#include <cstring>

namespace harness {

uint32_t crc32(const uint8_t* data, uint32_t size) {
  static const uint32_t kTable[16] = {0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
                                      0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                      0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
  uint32_t crc = 0xFFFFFFFF;
  for (uint32_t i = 0; i < size; ++i) {
    crc ^= data[i];
    crc = (crc >> 4) ^ kTable[crc & 15];
    crc = (crc >> 4) ^ kTable[crc & 15];
  }
  return ~crc;
}

bool FrameReceiver::feed(uint8_t byte, ReceivedFrame* frame) {
  if (byte != 0) {
    if (size_ < sizeof(buffer_)) {
      buffer_[size_++] = byte;
    } else {
      too_long_ = true;
    }
    return false;
  }
  const bool empty = size_ == 0;
  const bool whole = !empty && !too_long_ && decode(frame);
  if (whole) {
    ++received_;
  } else if (!empty) {
    ++damaged_;
  }
  size_ = 0;
  too_long_ = false;
  return whole;
}

// In place: COBS never writes ahead of what it reads.
bool FrameReceiver::decode(ReceivedFrame* frame) {
  uint32_t in = 0;
  uint32_t out = 0;
  while (in < size_) {
    const uint32_t code = buffer_[in++];
    if (in + code - 1 > size_) return false;
    for (uint32_t i = 1; i < code; ++i) buffer_[out++] = buffer_[in++];
    if (code != 0xFF && in < size_) buffer_[out++] = 0;
  }
  if (out < kHeaderBytes + kCrcBytes) return false;
  uint32_t crc;
  memcpy(&crc, buffer_ + out - kCrcBytes, kCrcBytes);
  if (crc != crc32(buffer_, out - kCrcBytes)) return false;
  memcpy(&frame->header.nonce, buffer_, 4);
  memcpy(&frame->header.sequence, buffer_ + 4, 2);
  frame->header.type = buffer_[6];
  frame->payload = buffer_ + kHeaderBytes;
  frame->payload_size = out - kHeaderBytes - kCrcBytes;
  return true;
}

uint32_t seal_frame(uint8_t* raw, uint32_t size, uint8_t* out) {
  const uint32_t crc = crc32(raw, size);
  memcpy(raw + size, &crc, kCrcBytes);
  size += kCrcBytes;
  uint32_t at = 0;
  out[at++] = 0;
  uint32_t code_at = at++;
  uint8_t code = 1;
  for (uint32_t i = 0; i < size; ++i) {
    if (raw[i] == 0) {
      out[code_at] = code;
      code_at = at++;
      code = 1;
    } else {
      out[at++] = raw[i];
      ++code;
    }
  }
  out[code_at] = code;
  out[at++] = 0;
  return at;
}

}  // namespace harness
