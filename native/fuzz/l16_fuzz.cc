// L16 at each of its rates: any payloads in any order at any times, played a frame at a time.
#include <cstdint>
#include <vector>

#include "plane/leg/playout.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Codec codec = data[0] % 3 == 0 ? Codec::l16_8k : data[0] % 3 == 1 ? Codec::l16_16k : Codec::l16_24k;
  const uint32_t scale = codec_clock_scale(codec);
  Playout playout(codec);
  int64_t now = 1'000'000;
  uint32_t timestamp = 0xfffff000;  // which soon begins anew
  for (size_t at = 1; at + 2 < size;) {
    const uint8_t how = data[at];
    const uint32_t frames = data[at + 1] % 5;  // 0: what follows is the payload as it is
    const size_t count = data[at + 1] < size - at - 2 ? data[at + 1] : size - at - 2;
    std::vector<uint8_t> packet(data + at + 2, data + at + 2 + count);
    at += 2 + count;
    if (frames > 0) packet.resize(frames * 80 * scale * l16_sample_bytes, how);
    const uint32_t lasts = static_cast<uint32_t>(packet.size() / l16_sample_bytes);
    if ((how & 0x80) != 0) timestamp += how * 97u;  // now and then a gap, or a step back
    if ((how & 0x40) != 0) timestamp -= 2 * lasts;
    playout.insert(timestamp, packet.data(), packet.size(), now - (how & 0x30) * 1000);
    timestamp += lasts;
    for (int tick = 0; tick < (how & 3); tick++) {
      int16_t out[frame_samples_max * 3 / 2];
      bool heard;
      now += 20'000;
      if (playout.frame(now, out, heard) != frame_units * scale) __builtin_trap();
    }
  }
  return 0;
}
