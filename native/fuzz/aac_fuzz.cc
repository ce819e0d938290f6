// AAC: any frames, one after the other, give sound within bounds or fail. The library's own decoding is what is under
// test as much as what is around it, since it reads what strangers send.
#include <cstdint>
#include <vector>

#include "decode/aac_decoder.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<AacDecoder> decoder = AacDecoder::open();
  if (!decoder) return 0;
  static std::vector<float> out(AacDecoder::frame_max_samples);
  for (size_t at = 0; at < size;) {
    const size_t count = size - at < 64 ? size - at : 64;
    // A header that is right lets the bytes behind it be read as a frame of low complexity, 44.1 kHz, one channel.
    const size_t whole = 7 + count;
    std::vector<uint8_t> frame = {
        0xff, 0xf1, 0x50, 0x40, static_cast<uint8_t>(whole >> 3), static_cast<uint8_t>((whole & 7) << 5 | 0x1f), 0xfc};
    frame.insert(frame.end(), data + at, data + at + count);
    for (const AacDecoder::Sound sound :
         {decoder->decode(frame.data(), frame.size(), out.data()), decoder->decode(data + at, count, out.data())}) {
      if (sound.samples > AacDecoder::frame_max_samples || (sound.samples > 0 && sound.hz == 0)) __builtin_trap();
    }
    at += count;
  }
  return 0;
}
