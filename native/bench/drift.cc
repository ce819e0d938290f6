// An hour of a call on virtual time: a far end whose clock runs 200 ppm fast or slow, 2 % loss, up to 40 ms of jitter that reorders. Prints the
// delay of what is heard over the fastest packet, how it moves, and how much had to be invented.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "plane/playout.h"

using namespace sidetone;

namespace {

struct Packet {
  int64_t arrival_us;
  uint32_t timestamp;
  bool operator<(const Packet& other) const { return arrival_us > other.arrival_us; }
};

void call(double minutes, double ppm, double loss, double jitter_ms) {
  std::mt19937 random(42);
  std::uniform_real_distribution<double> uniform(0, 1);
  auto playout = std::make_unique<Playout>(Codec::pcmu);
  std::priority_queue<Packet> network;
  const int64_t start_us = 1'000'000'000;
  double sent_us = 0;
  uint32_t number = 0;
  std::vector<double> delays;
  double first_minute = 0;
  double last_minute = 0;
  const int ticks = static_cast<int>(minutes * 3000);
  int concealed_before = 0;
  for (int tick = 0; tick < ticks; tick++) {
    const int64_t now_us = start_us + tick * 20'000LL;
    while (start_us + sent_us <= now_us) {
      if (uniform(random) >= loss) network.push({start_us + static_cast<int64_t>(sent_us + uniform(random) * jitter_ms * 1000), number * 160});
      number++;
      sent_us = number * 20'000.0 * (1 + ppm * 1e-6);
    }
    while (!network.empty() && network.top().arrival_us <= now_us) {
      uint8_t payload[160];
      for (int i = 0; i < 160; i++) payload[i] = static_cast<uint8_t>(0x90 + (i % 40 < 20 ? i % 20 : 20 - i % 20) % 16);
      (void)playout->jitter().insert(network.top().timestamp, payload, sizeof payload, network.top().arrival_us);
      network.pop();
    }
    int16_t pcm[frame_samples_max];
    bool heard = false;
    (void)playout->frame(now_us, pcm, heard);
    if (tick < 500) continue;
    const double delay = static_cast<double>(playout->delay_us(now_us)) / 1000;
    delays.push_back(delay);
    if (tick < 3500) first_minute += delay / 3000;
    if (tick >= ticks - 3000) last_minute += delay / 3000;
    if (tick == 500) concealed_before = static_cast<int>(playout->concealed_frames());
  }
  std::sort(delays.begin(), delays.end());
  const auto at = [&delays](double part) { return delays[static_cast<size_t>(part * static_cast<double>(delays.size() - 1))]; };
  std::printf("%+5.0f ppm, %2.0f %% loss, %2.0f ms jitter, %3.0f min: delay over the fastest packet %5.1f ms median, %5.1f p99, %5.1f most; first minute %5.1f, last %5.1f; "
              "concealed %.2f %% of frames\n",
              ppm, loss * 100, jitter_ms, minutes, at(0.5), at(0.99), at(1), first_minute, last_minute,
              100.0 * (static_cast<int>(playout->concealed_frames()) - concealed_before) / ticks);
}

}  // namespace

int main() {
  for (const double ppm : {0.0, 200.0, -200.0}) {
    call(60, ppm, 0, 0);
    call(60, ppm, 0.02, 40);
  }
  return 0;
}
