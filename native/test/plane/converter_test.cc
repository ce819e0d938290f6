// The converter of sources: sounds of any rate that follow each other meet without a gap, an overlap or a step.
#include "plane/audio/converter.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "test/check.h"

namespace sidetone {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr double amplitude = 0.5;
constexpr uint32_t rates_hz[] = {8000, 11'025, 16'000, 22'050, 24'000, 32'000, 44'100, 48'000, 96'000};

/** A tone from a place on, both in samples. */
std::vector<float> tone(double hz, uint32_t rate_hz, size_t from, size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; i++)
    out[i] = static_cast<float>(amplitude * std::sin(2 * pi * hz * static_cast<double>(from + i) / rate_hz + 0.7));
  return out;
}

/** One sound, converted by itself, given in blocks of that length. */
std::vector<int16_t> converted(FilterBank& filters, const std::vector<float>& in, uint32_t in_hz, uint32_t out_hz,
                               size_t block = 256) {
  Converter converter(filters.get(in_hz, out_hz));
  std::vector<int16_t> out;
  for (size_t at = 0; at < in.size(); at += block) {
    const size_t count = std::min(block, in.size() - at);
    const size_t before = out.size();
    out.resize(before + converter.out_max(count));
    out.resize(before + converter.convert(&in[at], count, out.data() + before));
  }
  const size_t before = out.size();
  out.resize(before + converter.flush_max());
  out.resize(before + converter.flush(out.data() + before));
  return out;
}

/** The largest difference between two sounds of one length, as a part of the tone's amplitude. */
double difference(const std::vector<int16_t>& one, const std::vector<int16_t>& other) {
  int worst = 0;
  for (size_t i = 0; i < one.size(); i++) worst = std::max(worst, std::abs(one[i] - other[i]));
  return worst / (32768 * amplitude);
}

int steepest(const std::vector<int16_t>& pcm) {
  int most = 0;
  for (size_t i = 1; i < pcm.size(); i++) most = std::max(most, std::abs(pcm[i] - pcm[i - 1]));
  return most;
}

TEST("a sound of any rate is as long as before and lies where it was, from its first sample to its last") {
  FilterBank filters;
  for (const uint32_t in_hz : rates_hz) {
    for (const uint32_t out_hz : {8000u, 16'000u, 24'000u, 48'000u}) {
      const std::vector<int16_t> out = converted(filters, tone(440, in_hz, 0, in_hz / 5), in_hz, out_hz);
      std::vector<int16_t> exact;
      for (const float sample : tone(440, out_hz, 0, out_hz / 5))
        exact.push_back(static_cast<int16_t>(std::lrint(32768 * sample)));
      CHECK(out.size() == exact.size());
      CHECK(difference(out, exact) < 0.03);
    }
  }
}

TEST("a tone that is cut in three is as one when each piece was converted by itself") {
  FilterBank filters;
  for (const uint32_t in_hz : {16'000u, 44'100u, 48'000u}) {
    for (const double hz : {200.0, 440.0, 1000.0, 3000.0}) {
      const size_t third = in_hz / 10 + in_hz / 1000 * 7;
      std::vector<int16_t> joined;
      for (size_t piece = 0; piece < 3; piece++) {
        const std::vector<int16_t> part = converted(filters, tone(hz, in_hz, piece * third, third), in_hz, 8000);
        joined.insert(joined.end(), part.begin(), part.end());
      }
      const std::vector<int16_t> whole = converted(filters, tone(hz, in_hz, 0, 3 * third), in_hz, 8000);
      // A place of the pieces is another one of the whole by half a sample at most.
      const bool aligned = third * 8000 % in_hz == 0;
      CHECK(joined.size() <= whole.size() + 1 && whole.size() <= joined.size() + 1);
      CHECK(steepest(joined) <= steepest(whole) * (aligned ? 1.01 : 1.5));
      if (!aligned) continue;
      CHECK(joined.size() == whole.size());
      CHECK(difference(joined, whole) < (hz <= 1000 ? 0.02 : 0.1));
    }
  }
}

TEST("ten passes of a second are ten seconds, and a tone in them is one") {
  FilterBank filters;
  for (const uint32_t in_hz : {16'000u, 44'100u, 48'000u}) {
    std::vector<int16_t> looped;
    for (int pass = 0; pass < 10; pass++) {
      const std::vector<int16_t> one = converted(filters, tone(440, in_hz, 0, in_hz), in_hz, 8000);
      looped.insert(looped.end(), one.begin(), one.end());
    }
    CHECK(looped.size() == 80'000);
    CHECK(difference(looped, converted(filters, tone(440, in_hz, 0, size_t{10} * in_hz), in_hz, 8000)) < 0.01);
  }
}

TEST("a sound of any length gives that length at the other rate, rounded, however it is cut into blocks") {
  FilterBank filters;
  for (const uint32_t in_hz : {4000u, 8000u, 22'255u, 44'100u, 47'999u, 48'000u}) {
    for (const uint32_t out_hz : {8000u, 48'000u}) {
      const std::vector<float> all = tone(440, in_hz, 0, 1500);
      for (size_t count = 0; count <= all.size(); count += count < 20 ? 1 : 113) {
        const std::vector<float> in(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
        const std::vector<int16_t> out = converted(filters, in, in_hz, out_hz);
        CHECK(out.size() == (2 * count * out_hz + in_hz) / (2 * in_hz));
        if (count % 113 != 7) continue;
        CHECK(out == converted(filters, in, in_hz, out_hz, 1) && out == converted(filters, in, in_hz, out_hz, 1024));
      }
    }
  }
}

}  // namespace
}  // namespace sidetone
