#include "kernel/mix.h"

namespace sidetone {
namespace {

inline int16_t saturate(int32_t value) {
  return static_cast<int16_t>(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
}

}  // namespace

void mix_add(int32_t* sum, const int16_t* pcm, size_t count) {
  for (size_t i = 0; i < count; i++) sum[i] += pcm[i];
}

void mix_without(const int32_t* sum, const int16_t* self, int16_t* out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = saturate(sum[i] - self[i]);
}

void mix_whole(const int32_t* sum, int16_t* out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = saturate(sum[i]);
}

void mix_volume(int16_t* pcm, size_t count, int32_t percent) {
  if (percent == 100) return;
  const int32_t gain = (percent * 16384 + 50) / 100;  // Q14: 200 % still fits 16 bits of gain
  for (size_t i = 0; i < count; i++) pcm[i] = saturate((pcm[i] * gain + 8192) >> 14);
}

}  // namespace sidetone
