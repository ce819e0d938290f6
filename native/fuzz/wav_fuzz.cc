// WAV: any bytes in any pieces end, within bounds, and cut differently give the same samples.
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernel/wav/wav.h"

using namespace sidetone;

namespace {

std::vector<float> decode(const uint8_t* data, size_t size, size_t step, size_t room) {
  WavReader reader;
  std::vector<float> all;
  std::vector<float> out(room);
  for (size_t at = 0; at < size;) {
    const size_t count = size - at < step ? size - at : step;
    const WavReader::Step made = reader.read(data + at, count, out.data(), room);
    if (made.consumed > count || made.made > room) __builtin_trap();
    for (size_t i = 0; i < made.made; i++) {
      if (!(out[i] >= -1.0f && out[i] <= 1.0f)) __builtin_trap();
      all.push_back(out[i]);
    }
    at += made.consumed;
    if (made.consumed == 0 && made.made == 0) __builtin_trap();
  }
  (void)reader.incomplete();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  if (decode(data, size, size, 64) != decode(data, size, 1 + data[0] % 13, 1 + data[1] % 5)) __builtin_trap();
  return 0;
}
