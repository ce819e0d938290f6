// MPEG audio: any frames of layer III, one after the other, give sound within bounds or fail. The library's own
// decoding is what is under test as much as what is around it, since it reads what strangers send.
#include <cstdint>
#include <vector>

#include "decode/mpeg_decoder.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<MpegDecoder> decoder = MpegDecoder::open();
  if (!decoder) return 0;
  static std::vector<float> out(MpegDecoder::sound_max_samples);
  // 64 kbit/s at 24 kHz: frames of 192 bytes, of which the input chooses one or two channels.
  constexpr size_t frame_bytes = 192;
  size_t calls = 0;
  for (size_t at = 0; at < size;) {
    const size_t count = size - at < frame_bytes - 4 ? size - at : frame_bytes - 4;
    std::vector<uint8_t> frame = {0xff, 0xf3, 0x84, static_cast<uint8_t>(data[at] & 0xf0)};
    frame.insert(frame.end(), data + at, data + at + count);
    frame.resize(frame_bytes);
    MpegDecoder::Sound sound = decoder->decode(frame.data(), frame.size(), out.data());
    while (!sound.failed && sound.more && ++calls < 10'000) sound = decoder->decode(nullptr, 0, out.data());
    if (sound.samples > MpegDecoder::sound_max_samples || (sound.samples > 0 && sound.hz == 0)) __builtin_trap();
    at += count;
  }
  if (calls == 10'000) __builtin_trap();
  return 0;
}
