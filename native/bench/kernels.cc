// ns a sample of each kernel, beside the plain table of the same codec in the same run. The median of interleaved rounds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "kernel/g711.h"
#include "kernel/g722.h"
#include "kernel/level.h"
#include "kernel/mix.h"
#include "kernel/mix_g711.h"
#include "kernel/resampler.h"
#include "kernel/tone.h"

using namespace sidetone;

namespace {

constexpr size_t frame = 160;
constexpr int rounds = 41;

alignas(64) int16_t pcm[frame];
alignas(64) uint8_t octets[frame];
constexpr size_t ten = 10;
struct Talker {
  alignas(64) int16_t said[frame];
  uint8_t octets[frame];
};
Talker legs[ten];
uint8_t encode_table[65536];
int16_t decode_table[256];
volatile int sink;

double once(const std::function<void()>& body, double samples) {
  constexpr int repeats = 1'000;  // a fraction of a millisecond: most rounds meet no neighbour
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; i++) body();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / repeats / samples;
}

struct Contestant {
  const char* name;
  double samples;
  std::function<void()> body;
  std::vector<double> times = {};
};

}  // namespace

int main() {
  uint32_t seed = 1;
  for (size_t i = 0; i < frame; i++) pcm[i] = static_cast<int16_t>((seed = seed * 1664525u + 1013904223u) >> 16);
  for (int i = 0; i < 65536; i++) {
    const int16_t sample = static_cast<int16_t>(i);
    mulaw_encode(&sample, &encode_table[i], 1);
  }
  for (Talker& leg : legs) {
    for (uint8_t& octet : leg.octets) octet = static_cast<uint8_t>((seed = seed * 1664525u + 1013904223u) >> 24);
  }
  for (int i = 0; i < 256; i++) {
    const uint8_t octet = static_cast<uint8_t>(i);
    mulaw_decode(&octet, &decode_table[i], 1);
  }
  alignas(64) int32_t sum[frame] = {};
  alignas(64) int16_t mixed[frame];
  static int16_t wide[2 * frame];
  G722Encoder encoder;
  ToneDetector detector(8000);
  ToneDetector::Key key;
  G722Decoder decoder;
  const ResamplerFilter f48(48000, 8000);
  const ResamplerFilter f44(44100, 8000);
  const ResamplerFilter f8(8000, 16000);
  Resampler r48(f48);
  Resampler r44(f44);
  Resampler r8(f8);
  std::vector<float> in(960, 0.25f);
  std::vector<float> out(2000);

  std::vector<Contestant> all = {
      {"mu-law encode, 64 K table", frame, [&] { for (size_t i = 0; i < frame; i++) octets[i] = encode_table[static_cast<uint16_t>(pcm[i])]; }},
      {"mu-law encode", frame, [&] { mulaw_encode(pcm, octets, frame); }},
      {"A-law encode", frame, [&] { alaw_encode(pcm, octets, frame); }},
      {"mu-law decode, 256 table", frame, [&] { for (size_t i = 0; i < frame; i++) mixed[i] = decode_table[octets[i]]; }},
      {"mu-law decode", frame, [&] { mulaw_decode(octets, mixed, frame); }},
      {"A-law decode", frame, [&] { alaw_decode(octets, mixed, frame); }},
      {"room of ten: decode, mix, subtract, encode, ns a leg", ten, [&] {
         std::memset(sum, 0, sizeof sum);
         for (size_t i = 0; i < ten; i++) {
           mulaw_decode(legs[i].octets, legs[i].said, frame);
           mix_add(sum, legs[i].said, frame);
         }
         for (size_t i = 0; i < ten; i++) mulaw_without(sum, legs[i].said, legs[i].octets, frame);
       }},
      {"DTMF detector: ns a leg and tick", 1, [&] { sink = detector.process(pcm, frame, key); }},
      {"level: ns a leg and tick", 1, [&] { sink = static_cast<int>(level_dbov(pcm, frame)); }},
      {"G.722 encode", 2 * frame, [&] { encoder.encode(wide, 2 * frame, octets); }},
      {"G.722 decode", 2 * frame, [&] { decoder.decode(octets, frame, wide); }},
      {"resample 48 to 8 kHz, an output", 160, [&] { sink = static_cast<int>(r48.process(in.data(), 960, out.data())); }},
      {"resample 44.1 to 8 kHz, an output", 160, [&] { sink = static_cast<int>(r44.process(in.data(), 882, out.data())); }},
      {"resample 8 to 16 kHz, an output", 320, [&] { sink = static_cast<int>(r8.process(in.data(), 160, out.data())); }},
  };
  for (int round = 0; round < rounds; round++) {
    for (Contestant& contestant : all) {
      contestant.times.push_back(once(contestant.body, contestant.samples));
      sink = octets[0] + mixed[0];
    }
  }
  for (Contestant& contestant : all) {
    std::sort(contestant.times.begin(), contestant.times.end());
    std::printf("%-50s %8.3f ns\n", contestant.name, contestant.times[rounds / 2]);
  }
  return 0;
}
