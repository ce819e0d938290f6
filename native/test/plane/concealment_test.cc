#include "plane/leg/concealment.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "test/check.h"

using namespace sidetone;

namespace {

constexpr double pi = 3.14159265358979323846;

/** A voice: harmonics of a pitch, at a rate in Hz. */
std::vector<int16_t> voice(uint32_t rate_hz, double pitch_hz, size_t count) {
  std::vector<int16_t> pcm(count);
  for (size_t i = 0; i < count; i++) {
    double sum = 0;
    for (int k = 1; k <= 8; k++)
      sum += 2000.0 / k * std::sin(2 * pi * k * pitch_hz * static_cast<double>(i) / rate_hz + k);
    pcm[i] = static_cast<int16_t>(std::lrint(sum));
  }
  return pcm;
}

std::vector<int16_t> concealed(const std::vector<int16_t>& pcm, size_t lost_at, uint32_t rate_hz, size_t count) {
  Concealment concealment;
  concealment.begin(pcm.data() + lost_at, rate_hz);
  std::vector<int16_t> out(count);
  concealment.make(out.data(), out.size());
  return out;
}

}  // namespace

TEST("a lost voice goes on at its pitch, without a step, within a tenth of what it would have been in the first 5 ms") {
  for (const uint32_t rate_hz : {8000u, 16000u, 24000u}) {
    for (const double pitch_hz : {80.0, 110.0, 160.0, 200.0, 235.0}) {
      const size_t lost_at = rate_hz / 10;
      const std::vector<int16_t> pcm = voice(rate_hz, pitch_hz, rate_hz / 5);
      const std::vector<int16_t> out = concealed(pcm, lost_at, rate_hz, rate_hz / 200);
      double error = 0;
      double power = 0;
      for (size_t i = 0; i < out.size(); i++) {
        const double gain = 1 - static_cast<double>(i) / (rate_hz * Concealment::fade_ms / 1000.0);
        error += std::pow(out[i] - gain * pcm[lost_at + i], 2);
        power += std::pow(pcm[lost_at + i], 2);
      }
      CHECK(error < 0.1 * power);
    }
  }
}

TEST("a loss fades out within 80 ms and is never 6 dB louder than what came before, whatever that was") {
  std::mt19937 random(29);
  for (const uint32_t rate_hz : {8000u, 16000u, 24000u}) {
    for (int round = 0; round < 200; round++) {
      std::vector<int16_t> pcm(rate_hz * Concealment::history_ms / 1000 * 2);
      double loudest = 1;
      const int kind = round % 4;
      for (size_t i = 0; i < pcm.size(); i++) {
        const int16_t noise = static_cast<int16_t>(random());
        pcm[i] = kind == 0   ? noise
                 : kind == 1 ? int16_t{0}
                 : kind == 2 ? (i / 40 % 2 == 0 ? 32767 : -32768)
                             : static_cast<int16_t>(noise >> (i * 12 / pcm.size()));
        loudest = std::max(loudest, std::fabs(pcm[i]));
      }
      const size_t whole = rate_hz * Concealment::fade_ms / 1000;
      const std::vector<int16_t> out = concealed(pcm, pcm.size(), rate_hz, whole + 320);
      for (size_t i = 0; i < out.size(); i++) CHECK(std::fabs(out[i]) <= 2 * loudest);
      for (size_t i = whole; i < out.size(); i++) CHECK(out[i] == 0);
    }
  }
}

TEST("a lost frame whose next is known comes nearer to what it would have been, and ends where the next begins") {
  for (const uint32_t rate_hz : {8000u, 16000u, 24000u}) {
    for (const double pitch_hz : {110.0, 160.0, 200.0, 235.0}) {
      const size_t count = rate_hz / 50;
      const size_t lost_at = rate_hz / 10;
      std::vector<int16_t> pcm = voice(rate_hz, pitch_hz, rate_hz / 5);
      for (size_t i = 0; i < pcm.size(); i++) {  // the voice grows over the lost frame, to three times what it was
        const double grown =
            std::clamp((static_cast<double>(i) - static_cast<double>(lost_at)) / static_cast<double>(count), 0.0, 1.0);
        pcm[i] = static_cast<int16_t>(pcm[i] * (1 + 2 * grown));
      }
      const std::vector<int16_t> forward = concealed(pcm, lost_at, rate_hz, count);
      std::vector<int16_t> both = forward;
      Concealment::meet(both.data(), count, &pcm[lost_at + count], count, rate_hz);
      const auto error = [&](const std::vector<int16_t>& out, size_t from) {
        double sum = 0;
        for (size_t i = from; i < count; i++) sum += std::pow(out[i] - pcm[lost_at + i], 2);
        return sum;
      };
      CHECK(error(both, 0) < 0.5 * error(forward, 0));
      CHECK(error(both, count * 9 / 10) < 0.1 * error(forward, count * 9 / 10));
    }
  }
}

TEST("the meeting of two sounds never wraps around, whatever they are") {
  std::mt19937 random(31);
  for (const uint32_t rate_hz : {8000u, 16000u, 24000u}) {
    const size_t count = rate_hz / 50;
    for (int round = 0; round < 100; round++) {
      const int16_t level = round % 2 == 0 ? 32767 : static_cast<int16_t>(random());
      std::vector<int16_t> pcm(count, level);
      std::vector<int16_t> after(count, level);
      Concealment::meet(pcm.data(), count, after.data(), count, rate_hz);
      for (const int16_t sample : pcm) CHECK(level < 0 ? sample <= 0 : sample >= 0);
    }
  }
}
