// Sound through a lossy network: concealment SPEECH OUT PERCENT BURST SEED [JITTER_MS [LEAD_IN_MS]] reads 16-bit PCM of
// 8 kHz, loses that part of its packets (20 ms of mu-law) in bursts of that length, and writes what a leg makes of the
// rest, sample for sample. The others come up to JITTER_MS late, if that is given, and LEAD_IN_MS of the same speech go
// before, without a loss and without being written. Without arguments it prints the time that one frame takes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "bench/pcm_file.h"
#include "plane/leg/concealment.h"
#include "plane/leg/playout.h"

using namespace sidetone;

namespace {

constexpr int64_t begin_us = 1'000'000'000;
constexpr int64_t frame_us = 20'000;
constexpr int64_t tick_phase_us = 3'000;  // a tick comes so long after its packet
constexpr size_t spared = 20;             // the first packets all come

/** Which packets are lost: bursts at random, with at least one packet between two. */
std::vector<bool> losses(size_t packets, double part, size_t burst, uint32_t seed) {
  std::vector<bool> lost(packets);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> chance(0, 1);
  const double length = static_cast<double>(burst);
  const double begins = part / length / (1 - part + part / length);
  for (size_t i = spared; i < packets; i++) {
    if (chance(random) >= begins) continue;
    for (size_t k = 0; k < burst && i < packets; k++) lost[i++] = true;
    if (burst == 1) i--;
  }
  return lost;
}

/** When each packet comes: late by up to `jitter_ms`, at random, and never before the one before it. */
std::vector<int64_t> arrive(size_t packets, double jitter_ms, uint32_t seed) {
  std::vector<int64_t> arrivals(packets);
  std::mt19937 random(seed + 1);
  std::uniform_real_distribution<double> late_us(0, jitter_ms * 1000);
  for (size_t i = 0; i < packets; i++) {
    arrivals[i] = begin_us + static_cast<int64_t>(i) * frame_us + static_cast<int64_t>(late_us(random));
    if (i > 0) arrivals[i] = std::max(arrivals[i], arrivals[i - 1]);
  }
  return arrivals;
}

/** The shortest of many runs, in microseconds: a frame from one side, and one from both. */
void print_cost(uint32_t rate_hz) {
  constexpr int runs = 3000;
  std::mt19937 random(1);
  std::vector<int16_t> voice(2000);
  for (size_t i = 0; i < voice.size(); i++) {
    const double seconds = static_cast<double>(i) / rate_hz;
    voice[i] = static_cast<int16_t>(5000 * std::sin(2 * 3.14159265 * 140 * seconds) +
                                    2000 * std::sin(2 * 3.14159265 * 900 * seconds) + static_cast<int>(random() % 500));
  }
  const size_t count = rate_hz / 50;
  int16_t frame[frame_samples_max];
  double one_us = 1e9;
  double both_us = 1e9;
  for (int i = 0; i < runs; i++) {
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    Concealment concealment;
    concealment.begin(&voice[1000 + static_cast<size_t>(i) % 100], rate_hz);
    concealment.make(frame, count);
    const auto made = Clock::now();
    Concealment::meet(frame, count, &voice[1400], count, rate_hz);
    const auto met = Clock::now();
    one_us = std::min(one_us, std::chrono::duration<double, std::micro>(made - begun).count());
    both_us = std::min(both_us, std::chrono::duration<double, std::micro>(met - begun).count());
  }
  std::printf("%u Hz: a frame from one side %.1f us, from both %.1f us\n", rate_hz, one_us, both_us);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) {
    print_cost(8000);
    print_cost(16000);
    return 0;
  }
  if (argc < 6 || argc > 8) {
    std::fprintf(stderr, "concealment SPEECH OUT PERCENT BURST SEED [JITTER_MS [LEAD_IN_MS]]\n");
    return 2;
  }
  const std::vector<int16_t> speech = bench::read_pcm(argv[1]);
  const size_t packets = speech.size() / frame_units;
  const size_t lead_in = argc > 7 ? static_cast<size_t>(std::atoi(argv[7])) / 20 : 0;
  std::vector<bool> lost(lead_in);
  const std::vector<bool> after = losses(packets, std::atof(argv[3]) / 100, static_cast<size_t>(std::atoi(argv[4])),
                                         static_cast<uint32_t>(std::atoi(argv[5])));
  lost.insert(lost.end(), after.begin(), after.end());
  FILE* out = std::fopen(argv[2], "wb");
  if (speech.empty() || out == nullptr) return 1;
  Playout playout(Codec::pcmu);
  const std::vector<int64_t> arrivals =
      arrive(lost.size(), argc > 6 ? std::atof(argv[6]) : 0, static_cast<uint32_t>(std::atoi(argv[5])));
  for (size_t i = 0, next = 0; i < lost.size(); i++) {
    const int64_t now_us = begin_us + static_cast<int64_t>(i) * frame_us;
    for (; next < lost.size() && arrivals[next] <= now_us; next++) {
      if (lost[next]) continue;
      uint8_t octets[frame_units];
      const size_t said = next < lead_in ? next % packets : next - lead_in;
      mulaw_encode(&speech[said * frame_units], octets, frame_units);
      (void)playout.jitter().insert(static_cast<uint32_t>(next * frame_units), octets, frame_units, arrivals[next]);
    }
    int16_t pcm[frame_samples_max];
    bool heard;
    const size_t count = playout.frame(now_us + tick_phase_us, pcm, heard);
    if (i >= lead_in) (void)std::fwrite(pcm, sizeof(int16_t), count, out);
  }
  std::fclose(out);
  return 0;
}
