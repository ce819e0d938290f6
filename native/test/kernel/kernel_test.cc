#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernel/codec/g711.h"
#include "kernel/codec/g722.h"
#include "kernel/mix/level.h"
#include "kernel/mix/mix.h"
#include "kernel/mix/mix_g711.h"
#include "test/check.h"

using namespace sidetone;

namespace {

constexpr double pi = 3.14159265358979323846;

// G.191's definitions, followed step by step and without any of the kernel's shortcuts.
uint8_t plain_mulaw(int16_t sample) {
  int absolute = sample < 0 ? ((~sample) >> 2) + 33 : (sample >> 2) + 33;
  if (absolute > 0x1fff) absolute = 0x1fff;
  int segment = 1;
  for (int rest = absolute >> 6; rest != 0; rest >>= 1) segment++;
  const int high = 8 - segment;
  const int low = 15 - ((absolute >> segment) & 15);
  return static_cast<uint8_t>(high << 4 | low | (sample >= 0 ? 0x80 : 0));
}

uint8_t plain_alaw(int16_t sample) {
  int value = sample < 0 ? (~sample) >> 4 : sample >> 4;
  if (value > 15) {
    int exponent = 1;
    while (value > 31) {
      value >>= 1;
      exponent++;
    }
    value = value - 16 + (exponent << 4);
  }
  if (sample >= 0) value |= 0x80;
  return static_cast<uint8_t>(value ^ 0x55);
}

int16_t plain_mulaw_linear(uint8_t octet) {
  const int sign = octet < 0x80 ? -1 : 1;
  const int inverted = ~octet;
  const int exponent = (inverted >> 4) & 7;
  const int step = 4 << (exponent + 1);
  return static_cast<int16_t>(sign * ((0x80 << exponent) + step * (inverted & 15) + step / 2 - 4 * 33));
}

int16_t plain_alaw_linear(uint8_t octet) {
  const int inverted = (octet ^ 0x55) & 0x7f;
  const int exponent = inverted >> 4;
  int mantissa = inverted & 15;
  if (exponent > 0) mantissa += 16;
  mantissa = (mantissa << 4) + 8;
  if (exponent > 1) mantissa <<= exponent - 1;
  return static_cast<int16_t>(octet > 127 ? mantissa : -mantissa);
}

}  // namespace

TEST("G.711 encodes all 65,536 samples as G.191 does, on every instruction set, at any alignment and length") {
  std::vector<int16_t> all(65536);
  for (int i = 0; i < 65536; i++) all[i] = static_cast<int16_t>(i - 32768);
  std::vector<uint8_t> mu(65536);
  std::vector<uint8_t> a(65536);
  for (const Width width : {Width::portable, Width::avx2, Width::avx512, Width::vbmi}) {
    if (width > kernel_width()) continue;
    const G711Forms forms = g711_forms(width);
    forms.mulaw_encode(all.data(), mu.data(), all.size());
    forms.alaw_encode(all.data(), a.data(), all.size());
    for (int i = 0; i < 65536; i++) {
      CHECK(mu[i] == plain_mulaw(all[i]));
      CHECK(a[i] == plain_alaw(all[i]));
    }
  }
  for (const Width width : {Width::portable, Width::avx2, Width::avx512, Width::vbmi}) {
    if (width > kernel_width()) continue;
    const G711Forms forms = g711_forms(width);
    for (size_t length = 0; length < 200; length++) {
      bool same = true;
      std::vector<uint8_t> part(length + 1, 0x42);
      forms.mulaw_encode(all.data() + 1234 + length, part.data(), length);
      for (size_t i = 0; i < length; i++) same = same && part[i] == plain_mulaw(all[1234 + length + i]);
      forms.alaw_encode(all.data() + 31234 + length, part.data(), length);
      for (size_t i = 0; i < length; i++) same = same && part[i] == plain_alaw(all[31234 + length + i]);
      CHECK(same && part[length] == 0x42);
      std::vector<int16_t> pcm(length + 1, 4242);
      forms.mulaw_decode(mu.data() + 1234 + length, pcm.data(), length);
      for (size_t i = 0; i < length; i++) same = same && pcm[i] == plain_mulaw_linear(mu[1234 + length + i]);
      forms.alaw_decode(a.data() + 31234 + length, pcm.data(), length);
      for (size_t i = 0; i < length; i++) same = same && pcm[i] == plain_alaw_linear(a[31234 + length + i]);
      CHECK(same && pcm[length] == 4242);
    }
  }
}

TEST("G.711 decodes all 256 octets of both laws as G.191 does") {
  uint8_t octets[256];
  int16_t mu[256];
  int16_t a[256];
  for (int i = 0; i < 256; i++) octets[i] = static_cast<uint8_t>(i);
  for (const Width width : {Width::portable, Width::avx2, Width::avx512, Width::vbmi}) {
    if (width > kernel_width()) continue;
    const G711Forms forms = g711_forms(width);
    forms.mulaw_decode(octets, mu, 256);
    forms.alaw_decode(octets, a, 256);
    for (int i = 0; i < 256; i++) {
      CHECK(mu[i] == plain_mulaw_linear(octets[i]));
      CHECK(a[i] == plain_alaw_linear(octets[i]));
    }
  }
}

TEST("the silence of a leg decodes to the smallest sample of its law") {
  int16_t sample;
  mulaw_decode(&mulaw_silence, &sample, 1);
  CHECK(sample == 0);
  alaw_decode(&alaw_silence, &sample, 1);
  CHECK(sample == 8);
}

TEST("a member of a mix hears the exact sum of all others, saturated once") {
  const int16_t a[4] = {32767, -32768, 100, 0};
  const int16_t b[4] = {32767, -32768, -50, 1};
  const int16_t c[4] = {-32768, 32767, 7, -1};
  int32_t sum[4] = {};
  mix_add(sum, a, 4);
  mix_add(sum, b, 4);
  mix_add(sum, c, 4);
  int16_t out[4];
  mix_without(sum, c, out, 4);
  CHECK(out[0] == 32767 && out[1] == -32768 && out[2] == 50 && out[3] == 1);
  mix_whole(sum, out, 4);
  CHECK(out[0] == 32766 && out[1] == -32768 && out[2] == 57 && out[3] == 0);
}

TEST("volume is percent, rounds to nearest and saturates") {
  const auto set = [](int16_t* samples, size_t count, int32_t percent) {
    mix_gain(samples, count, gain_of(percent), gain_of(percent), 0);
  };
  int16_t pcm[5] = {100, -100, 20000, -20000, 3};
  set(pcm, 5, 200);
  CHECK(pcm[0] == 200 && pcm[1] == -200 && pcm[2] == 32767 && pcm[3] == -32768 && pcm[4] == 6);
  int16_t half[2] = {101, 32767};
  set(half, 2, 50);
  CHECK(half[0] == 51 && half[1] == 16384);
  int16_t none[1] = {32767};
  set(none, 1, 0);
  CHECK(none[0] == 0);
}

TEST("level is in dB below full scale") {
  int16_t square[160];
  for (int i = 0; i < 160; i++) square[i] = i % 2 == 0 ? 32767 : -32767;
  CHECK(std::fabs(level_dbov(square, 160)) < 0.001f);
  for (int16_t& sample : square) sample = static_cast<int16_t>(sample / 10);
  CHECK(std::fabs(level_dbov(square, 160) + 20.0f) < 0.01f);
  const int16_t silence[160] = {};
  CHECK(level_dbov(silence, 160) == -127.0f);
  CHECK(level_dbov(silence, 0) == -127.0f);
}

TEST("the energy of a span is exact at any length, of the loudest samples too, on every instruction set") {
  std::vector<int16_t> pcm(2000, -32768);
  uint32_t seed = 5;
  for (size_t i = 1000; i < pcm.size(); i++)
    pcm[i] = static_cast<int16_t>((seed = seed * 1664525u + 1013904223u) >> 16);
  for (const Width width : {Width::portable, Width::avx2}) {
    if (width > kernel_width()) continue;
    const EnergyForm energy = energy_form(width);
    for (size_t from = 0; from < 1100; from += 275) {
      uint64_t exact = 0;
      for (size_t length = 0; length < 900; length++) {
        CHECK(energy(&pcm[from], length) == exact);
        exact += static_cast<uint64_t>(static_cast<int64_t>(pcm[from + length]) * pcm[from + length]);
      }
    }
  }
}

TEST("G.722 carries speech band and wide band tones with the quality of its quantizers, in any block size") {
  for (const double hz : {300.0, 1000.0, 3000.0, 6000.0}) {
    std::vector<int16_t> pcm(16000);
    for (size_t i = 0; i < pcm.size(); i++)
      pcm[i] = static_cast<int16_t>(std::lrint(8000 * std::sin(2 * pi * hz * i / 16000)));
    std::vector<uint8_t> octets(8000);
    std::vector<int16_t> back(16000);
    G722Encoder encoder;
    G722Decoder decoder;
    for (size_t at = 0; at < 16000; at += 320) encoder.encode(&pcm[at], 320, &octets[at / 2]);
    decoder.decode(octets.data(), octets.size(), back.data());
    // Compare at the codec's delay of 22 samples.
    double signal = 0;
    double noise = 0;
    for (size_t i = 4000; i < 15000; i++) {
      const double d = back[i + 22] - pcm[i];
      signal += static_cast<double>(pcm[i]) * pcm[i];
      noise += d * d;
    }
    CHECK(10 * std::log10(signal / noise) > (hz < 4000 ? 22 : 9));
    std::vector<uint8_t> again(8000);
    G722Encoder second;
    second.encode(pcm.data(), pcm.size(), again.data());
    CHECK(again == octets);
  }
}

TEST("G.722 is bit-exact: octets and samples as an independent implementation (spandsp 0.0.6) makes them") {
  std::vector<int16_t> pcm(16000);
  uint32_t seed = 1;
  for (size_t i = 0; i < pcm.size(); i++) {
    seed = seed * 1664525u + 1013904223u;
    // The noise is at half of full scale and less, where nothing is limited: that implementation does not limit its
    // bands to 15 bits.
    pcm[i] = static_cast<int16_t>(static_cast<int16_t>(seed >> 16) / (2 + static_cast<int>(i / 2000) * 4));
  }
  const auto fnv = [](const void* data, size_t count) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < count; i++) hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 16777619u;
    return hash;
  };
  std::vector<uint8_t> octets(8000);
  G722Encoder().encode(pcm.data(), pcm.size(), octets.data());
  CHECK(fnv(octets.data(), octets.size()) == 0x191b39b4);
  std::vector<int16_t> back(12000);
  G722Decoder().decode(octets.data() + 2000, 6000, back.data());
  CHECK(fnv(back.data(), 24000) == 0x8a90ae33);
}

TEST("the bands of the G.722 encoder are limited to 15 bits, however loud the sound") {
  // The loudest sound for each band: full scale, with the sign of the filter's taps.
  constexpr int16_t taps[12] = {3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11};
  int16_t low[g722_qmf_taps];
  int16_t high[g722_qmf_taps];
  for (size_t i = 0; i < 12; i++) {
    low[2 * i] = taps[i] < 0 ? -32768 : 32767;
    low[2 * i + 1] = taps[11 - i] < 0 ? -32768 : 32767;
    high[2 * i] = taps[i] < 0 ? 32767 : -32768;
    high[2 * i + 1] = low[2 * i + 1];
  }
  CHECK(g722_split(low).lower == 16383);
  CHECK(g722_split(high).higher == 16383);
  for (size_t i = 0; i < g722_qmf_taps; i++) {
    low[i] = static_cast<int16_t>(-(low[i] + 1));
    high[i] = static_cast<int16_t>(-(high[i] + 1));
  }
  CHECK(g722_split(low).lower == -16384);
  CHECK(g722_split(high).higher == -16384);
}

TEST("the sum without oneself is encoded as in two steps, on every instruction set, at any alignment and length") {
  std::vector<int32_t> sum(65536 + 80);
  std::vector<int16_t> self(sum.size());
  uint32_t seed = 7;
  for (size_t i = 0; i < sum.size(); i++) {
    seed = seed * 1664525u + 1013904223u;
    self[i] = static_cast<int16_t>(seed >> 16);
    // Every sample there is as the difference, then differences far beyond 16 bits.
    sum[i] = i < 65536 ? self[i] + static_cast<int32_t>(i) - 32768 : static_cast<int32_t>(seed) / 4;
  }
  for (const Width width : {Width::portable, Width::vbmi}) {
    if (width > kernel_width()) continue;
    const MixG711Forms forms = mix_g711_forms(width);
    for (const size_t length :
         {size_t{0}, size_t{1}, size_t{31}, size_t{33}, size_t{160}, size_t{161}, size_t{479}, sum.size() - 3}) {
      for (const size_t from : {size_t{0}, size_t{3}, sum.size() - length}) {
        if (from + length > sum.size()) continue;
        std::vector<int16_t> pcm(length);
        std::vector<uint8_t> mu(length + 1, 0x42);
        std::vector<uint8_t> a(length + 1, 0x42);
        mix_without(&sum[0] + from, &self[0] + from, pcm.data(), length);
        forms.mulaw_without(&sum[0] + from, &self[0] + from, mu.data(), length);
        forms.alaw_without(&sum[0] + from, &self[0] + from, a.data(), length);
        bool same = mu[length] == 0x42 && a[length] == 0x42;
        for (size_t i = 0; i < length; i++) {
          const int32_t exact = sum[from + i] - self[from + i];
          same = same && pcm[i] == (exact > 32767 ? 32767 : exact < -32768 ? -32768 : exact);
          same = same && mu[i] == plain_mulaw(pcm[i]) && a[i] == plain_alaw(pcm[i]);
        }
        CHECK(same);
      }
    }
  }
}

TEST("the zeros of a G.722 predictor are the same side by side as one after the other, driven to their bounds too") {
#if KERNEL_WIDE
  G722ZerosPortable plain{G722ZeroState()};
  G722ZerosWide wide{G722ZeroState()};
  uint32_t seed = 11;
  bool same = true;
  G722ZeroState at_bound;
  for (int i = 0; i < 400'000; i++) {
    seed = seed * 1664525u + 1013904223u;
    // Noise of every size, and long runs of one sign, which take the zeros as far as they go.
    const int32_t noise = static_cast<int16_t>(seed >> 16) * 3 / 8 >> (i / 1000 % 12);
    const int32_t now = i / 50'000 % 4 == 1 ? 12404 : i / 50'000 % 4 == 3 ? (i % 2 == 0 ? -12404 : 12404) : noise;
    same = same && plain.adapt(now) == wide.adapt(now);
    if (i == 99'999) plain.save(at_bound);
  }
  CHECK(same);
  CHECK(at_bound.zero[0] > 32000);
  G722ZeroState states[2];
  plain.save(states[0]);
  wide.save(states[1]);
  CHECK(std::memcmp(&states[0], &states[1], sizeof states[0]) == 0);
#endif
}
