// ns a sample of each kernel, beside the plain table of the same codec, or the library whose header is installed, in
// the same run. The median of interleaved rounds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "kernel/codec/g711.h"
#include "kernel/codec/g722.h"
#include "kernel/mix/level.h"
#include "kernel/mix/mix.h"
#include "kernel/mix/mix_g711.h"
#include "kernel/tone/tone.h"
#if __has_include(<spandsp.h>)
#include <spandsp.h>
#define HAVE_SPANDSP 1
#endif

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

/** Fills sound and tables; returns where the generator stands. */
uint32_t fill() {
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
  return seed;
}

/** Runs all in turn, so that a disturbance meets each alike, and prints the median of each. */
void run(std::vector<Contestant>& all) {
  for (int round = 0; round < rounds; round++) {
    for (Contestant& contestant : all) {
      contestant.times.push_back(once(contestant.body, contestant.samples));
      sink = octets[0];
    }
  }
  for (Contestant& contestant : all) {
    std::sort(contestant.times.begin(), contestant.times.end());
    std::printf("%-50s %8.3f ns\n", contestant.name, contestant.times[rounds / 2]);
  }
}

}  // namespace

int main() {
  uint32_t seed = fill();
  alignas(64) int32_t sum[frame] = {};
  alignas(64) int16_t mixed[frame];
  static int16_t wide[2 * frame];
  static int16_t heard[2 * frame];
  G722Encoder encoder;
  ToneDetector detector(8000);
  ToneDetector::Key key;
  G722Decoder decoder;
  int32_t smooth = 0;
  for (int16_t& sample : wide) {  // a low rumble with hiss, so that both bands have work
    smooth += (static_cast<int16_t>((seed = seed * 1664525u + 1013904223u) >> 16) - smooth) / 4;
    sample = static_cast<int16_t>(smooth / 2);
  }
  encoder.encode(wide, 2 * frame, octets);
  alignas(64) static uint8_t spoken[frame];
  std::memcpy(spoken, octets, sizeof spoken);

  const G711Forms narrow = g711_forms(kernel_width() < Width::avx2 ? kernel_width() : Width::avx2);
  std::vector<Contestant> all = {
      {"mu-law encode, 64 K table", frame,
       [&] {
         for (size_t i = 0; i < frame; i++) octets[i] = encode_table[static_cast<uint16_t>(pcm[i])];
       }},
      {"mu-law encode", frame, [&] { mulaw_encode(pcm, octets, frame); }},
      {"A-law encode", frame, [&] { alaw_encode(pcm, octets, frame); }},
      {"mu-law decode, 256 table", frame,
       [&] {
         for (size_t i = 0; i < frame; i++) mixed[i] = decode_table[octets[i]];
       }},
      {"mu-law decode", frame, [&] { mulaw_decode(octets, mixed, frame); }},
      {"A-law decode", frame, [&] { alaw_decode(octets, mixed, frame); }},
      {"mu-law encode, without AVX-512", frame, [&] { narrow.mulaw_encode(pcm, octets, frame); }},
      {"A-law encode, without AVX-512", frame, [&] { narrow.alaw_encode(pcm, octets, frame); }},
      {"mu-law decode, without AVX-512", frame, [&] { narrow.mulaw_decode(octets, mixed, frame); }},
      {"A-law decode, without AVX-512", frame, [&] { narrow.alaw_decode(octets, mixed, frame); }},
      {"room of ten: decode, mix, subtract, encode, ns a leg", ten,
       [&] {
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
      {"G.722 decode", 2 * frame, [&] { decoder.decode(spoken, frame, heard); }},
  };
#ifdef HAVE_SPANDSP
  g722_encode_state_t* const spandsp_encoder = g722_encode_init(nullptr, 64000, 0);
  g722_decode_state_t* const spandsp_decoder = g722_decode_init(nullptr, 64000, 0);
  all.push_back({"G.722 encode, spandsp", 2 * frame, [&] { g722_encode(spandsp_encoder, octets, wide, 2 * frame); }});
  all.push_back({"G.722 decode, spandsp", 2 * frame, [&] { g722_decode(spandsp_decoder, heard, spoken, frame); }});
#endif
  run(all);
  return 0;
}
