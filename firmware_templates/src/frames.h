// Frames: nonce u32, sequence u16, type u8, payload, CRC-32; COBS-stuffed between two zero bytes.
#pragma once

#include <cstdint>

#include "wire.h"

namespace harness {

constexpr uint32_t kHeaderBytes = 7;
constexpr uint32_t kCrcBytes = 4;
constexpr uint32_t kMaxFrameBytes = kHeaderBytes + kMaxPayloadBytes + kCrcBytes;
constexpr uint32_t kMaxSentBytes = kMaxFrameBytes + 3;  // one byte of stuffing, two zeros
static_assert(kMaxFrameBytes <= 254, "one byte of COBS overhead is enough only up to 254 bytes");

struct FrameHeader {
  uint32_t nonce;
  uint16_t sequence;
  uint8_t type;
};

struct ReceivedFrame {
  FrameHeader header;
  const uint8_t* payload;  // valid until the next byte is fed
  uint32_t payload_size;
};

// Finds frames in what arrives. Holds one frame.
class FrameReceiver {
 public:
  // True when `byte` ended a whole frame.
  bool feed(uint8_t byte, ReceivedFrame* frame);
  uint32_t received() const { return received_; }
  uint32_t damaged() const { return damaged_; }

 private:
  bool decode(ReceivedFrame* frame);
  uint8_t buffer_[kMaxFrameBytes + 1];
  uint32_t size_ = 0;
  bool too_long_ = false;
  uint32_t received_ = 0;
  uint32_t damaged_ = 0;
};

// Stuffs `raw` (header and payload, with room for the CRC behind) into `out`, zeros included. Returns the bytes to send.
uint32_t seal_frame(uint8_t* raw, uint32_t size, uint8_t* out);

uint32_t crc32(const uint8_t* data, uint32_t size);

}  // namespace harness
