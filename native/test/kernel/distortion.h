// THD+N of a sine: what is left of a signal when the sine of its frequency and the offset are taken out, over that
// sine. By least squares, so neither the phase nor the gain of what lies between counts.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/mix/mix.h"
#include "plane/audio/codec.h"
#include "plane/audio/converter.h"
#include "plane/audio/rate.h"

namespace sidetone::test {

constexpr double tone_pi = 3.14159265358979323846;

/** The distortion and noise in dB, of samples `from` on. `hz` is exact; `from` to the end holds many periods. */
inline double thd_n_db(const std::vector<int16_t>& pcm, size_t from, double hz, double rate_hz) {
  const double turn = 2 * tone_pi * hz / rate_hz;
  double m[3][4] = {};  // the normal equations of a cos + b sin + c
  for (size_t i = from; i < pcm.size(); i++) {
    const double row[4] = {std::cos(turn * static_cast<double>(i)), std::sin(turn * static_cast<double>(i)), 1,
                           static_cast<double>(pcm[i])};
    for (int r = 0; r < 3; r++) {
      for (int c = 0; c < 4; c++) m[r][c] += row[r] * row[c];
    }
  }
  for (int p = 0; p < 3; p++) {
    for (int r = 0; r < 3; r++) {
      if (r == p) continue;
      const double factor = m[r][p] / m[p][p];
      for (int c = p; c < 4; c++) m[r][c] -= factor * m[p][c];
    }
  }
  const double a = m[0][3] / m[0][0];
  const double b = m[1][3] / m[1][1];
  const double offset = m[2][3] / m[2][2];
  double rest = 0;
  for (size_t i = from; i < pcm.size(); i++) {
    const double d =
        pcm[i] - a * std::cos(turn * static_cast<double>(i)) - b * std::sin(turn * static_cast<double>(i)) - offset;
    rest += d * d;
  }
  const double count = static_cast<double>(pcm.size() - from);
  return 10 * std::log10(rest / count / ((a * a + b * b) / 2) + 1e-20);
}

/** A sine of `dbov` in whole frames. */
inline std::vector<int16_t> sine(double hz, double dbov, uint32_t rate_hz, size_t frames) {
  std::vector<int16_t> pcm(frames * rate_hz / 50);
  const double peak = 32768 * std::pow(10.0, dbov / 20);
  for (size_t i = 0; i < pcm.size(); i++)
    pcm[i] = static_cast<int16_t>(std::lrint(peak * std::sin(2 * tone_pi * hz * static_cast<double>(i) / rate_hz)));
  return pcm;
}

/**
 * What a member of a room at `to` hears of a tone said at `from` (indices of the table of rates), frame by frame as a
 * room does it: summed at the tone's rate, carried over, the listener's own loud voice in the sum and taken out again.
 */
inline std::vector<int16_t> heard_in_room(const std::vector<int16_t>& tone, size_t from, size_t to,
                                          FilterBank& filters) {
  const size_t in = rate_samples(from);
  const size_t out = rate_samples(to);
  RateBridge bridge(filters.get(rate_table_hz[from], rate_table_hz[to]), from, to);
  std::vector<int16_t> heard;
  std::vector<int16_t> self(out);
  uint32_t seed = 7;
  for (size_t at = 0; at + in <= tone.size(); at += in) {
    for (int16_t& sample : self) {
      seed = seed * 1664525u + 1013904223u;
      sample = static_cast<int16_t>(static_cast<int16_t>(seed >> 16) / 2);
    }
    std::vector<int32_t> said(in);
    mix_add(said.data(), &tone[at], in);
    std::vector<int32_t> total(out);
    mix_add(total.data(), self.data(), out);
    if (from == to) mix_add(total.data(), &tone[at], out);
    else bridge.add(said.data(), false, total.data());
    heard.resize(heard.size() + out);
    mix_without(total.data(), self.data(), heard.data() + heard.size() - out, out);
  }
  return heard;
}

/** Encoded and decoded, in frames. */
inline std::vector<int16_t> through(Codec codec, const std::vector<int16_t>& pcm) {
  const size_t frame = codec_samples(codec, frame_units);
  std::vector<int16_t> back(pcm.size() / frame * frame);
  Encoder encoder;
  Decoder decoder;
  for (size_t at = 0; at < back.size(); at += frame) {
    uint8_t octets[frame_units];
    encoder.encode(codec, &pcm[at], octets, frame_units);
    decoder.decode(codec, octets, &back[at], frame_units);
  }
  return back;
}

}  // namespace sidetone::test
