// Opus: any payloads in any order at any times, played a frame at a time.
#include <cstdint>
#include <cstring>
#include <vector>

#include "plane/leg/playout.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!opus_supported()) return 0;
  Playout playout(Codec::opus);
  int64_t now = 1'000'000;
  uint32_t timestamp = 0xfffff000;  // which soon begins anew
  for (size_t at = 0; at + 2 < size;) {
    const uint8_t how = data[at];
    const size_t count = data[at + 1] < size - at - 2 ? data[at + 1] : size - at - 2;
    const std::vector<uint8_t> packet(data + at + 2, data + at + 2 + count);
    at += 2 + count;
    const uint32_t lasts = static_cast<uint32_t>(opus_samples(packet.data(), packet.size()));
    if ((how & 0x80) != 0) timestamp += how * 97u;  // now and then a gap, or a step back
    if ((how & 0x40) != 0) timestamp -= 2 * lasts;
    playout.insert(timestamp, packet.data(), packet.size(), now - (how & 0x30) * 1000);
    timestamp += lasts;
    for (int tick = 0; tick < (how & 3); tick++) {
      int16_t out[opus_frame_samples];
      bool heard;
      now += 20'000;
      if (playout.frame(now, out, heard) != opus_frame_samples) __builtin_trap();
    }
  }
  return 0;
}
