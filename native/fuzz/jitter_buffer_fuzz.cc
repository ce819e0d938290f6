// The jitter buffer and what plays from it: any packets at any times, read a frame at a time.
#include <cstdint>
#include <cstring>

#include "plane/leg/playout.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  Playout playout(data[0] % 3 == 2 ? Codec::g722 : data[0] % 3 == 1 ? Codec::pcma : Codec::pcmu);
  int64_t now = 1'000'000;
  uint8_t payload[600];
  for (size_t i = 0; i < sizeof payload; i++) payload[i] = static_cast<uint8_t>(i * 37);
  for (size_t at = 1; at + 6 <= size; at += 6) {
    uint32_t timestamp;
    std::memcpy(&timestamp, data + at, 4);
    if ((data[at + 5] & 0x80) != 0) timestamp = (timestamp & 0x1fff) + (data[0] << 24);
    const size_t count = static_cast<size_t>(data[at + 4]) * 2;
    (void)playout.jitter().insert(timestamp, payload, count, now - data[at + 5] * 3000);
    for (int tick = 0; tick < (data[at + 5] & 7); tick++) {
      int16_t out[frame_samples_max];
      bool heard;
      now += 20'000;
      const size_t made = playout.frame(now, out, heard);
      if (made > frame_samples_max) __builtin_trap();
      const int64_t target = playout.jitter().target_us();
      if (target < JitterBuffer::target_min_us || target > JitterBuffer::target_max_us) __builtin_trap();
    }
  }
  return 0;
}
