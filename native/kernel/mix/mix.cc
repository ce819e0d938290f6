#include "kernel/mix/mix.h"

#include "kernel/dispatch.h"

namespace sidetone {
namespace {

KERNEL_BODY int16_t saturate(int32_t value) {
  return static_cast<int16_t>(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
}

KERNEL_BODY void add_body(int32_t* sum, const int16_t* pcm, size_t count) {
  for (size_t i = 0; i < count; i++) sum[i] += pcm[i];
}

KERNEL_BODY void without_body(const int32_t* sum, const int16_t* self, int16_t* out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = saturate(sum[i] - self[i]);
}

struct Forms {
  void (*add)(int32_t*, const int16_t*, size_t);
  void (*without)(const int32_t*, const int16_t*, int16_t*, size_t);
};

void add_portable(int32_t* sum, const int16_t* pcm, size_t count) { add_body(sum, pcm, count); }
void without_portable(const int32_t* sum, const int16_t* self, int16_t* out, size_t count) {
  without_body(sum, self, out, count);
}
#if KERNEL_WIDE
KERNEL_AVX2 void add_avx2(int32_t* sum, const int16_t* pcm, size_t count) { add_body(sum, pcm, count); }
KERNEL_AVX2 void without_avx2(const int32_t* sum, const int16_t* self, int16_t* out, size_t count) {
  without_body(sum, self, out, count);
}
KERNEL_AVX512 void add_avx512(int32_t* sum, const int16_t* pcm, size_t count) { add_body(sum, pcm, count); }
KERNEL_AVX512 void without_avx512(const int32_t* sum, const int16_t* self, int16_t* out, size_t count) {
  without_body(sum, self, out, count);
}
#endif

Forms forms() {
#if KERNEL_WIDE
  if (kernel_width() >= Width::avx512) return {add_avx512, without_avx512};
  if (kernel_width() == Width::avx2) return {add_avx2, without_avx2};
#endif
  return {add_portable, without_portable};
}

const Forms widest = forms();

}  // namespace

void mix_add(int32_t* sum, const int16_t* pcm, size_t count) { widest.add(sum, pcm, count); }

void mix_without(const int32_t* sum, const int16_t* self, int16_t* out, size_t count) {
  widest.without(sum, self, out, count);
}

void mix_whole(const int32_t* sum, int16_t* out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = saturate(sum[i]);
}

void mix_over(int16_t* out, const int16_t* pcm, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = saturate(out[i] + pcm[i]);
}

void mix_gain(int16_t* pcm, size_t count, int32_t from, int32_t to, size_t ramp) {
  if (from == to) ramp = 0;
  if (ramp > count) ramp = count;
  for (size_t i = 0; i < ramp; i++) {
    const int32_t gain = from + static_cast<int32_t>(static_cast<int64_t>(to - from) * static_cast<int64_t>(i + 1) /
                                                     static_cast<int64_t>(ramp));
    pcm[i] = saturate((pcm[i] * gain + 8192) >> 14);
  }
  if (to == gain_unity) return;
  for (size_t i = ramp; i < count; i++) pcm[i] = saturate((pcm[i] * to + 8192) >> 14);
}

bool mix_silent(const int16_t* pcm, size_t count) {
  int32_t any = 0;
  for (size_t i = 0; i < count; i++) any |= pcm[i];
  return any == 0;
}

}  // namespace sidetone
