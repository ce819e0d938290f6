// ns an output of all twelve pairs of 8, 16, 24 and 48 kHz in blocks of 20 ms, beside the libraries whose headers are
// installed (speexdsp as FreeSWITCH (quality 2) and Asterisk (5) use it, soxr HQ, libsamplerate best). Medians of
// interleaved rounds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/resampler/resampler.h"
#if __has_include(<speex/speex_resampler.h>)
#include <speex/speex_resampler.h>
#define HAVE_SPEEX 1
#endif
#if __has_include(<soxr.h>)
#include <soxr.h>
#define HAVE_SOXR 1
#endif
#if __has_include(<samplerate.h>)
#include <samplerate.h>
#define HAVE_SAMPLERATE 1
#endif

using namespace sidetone;

namespace {

constexpr int rounds = 41;
constexpr int repeats = 20;

struct Contestant {
  std::string name;
  std::function<void()> block;
  std::vector<double> times = {};
};

double once(const std::function<void()>& block, double outputs) {
  block();  // the caches are full of the contestant before it
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; i++) block();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / repeats / outputs;
}

}  // namespace

int main() {
  const uint32_t hz[] = {8000, 16000, 24000, 48000};
  std::vector<float> in(960);
  uint32_t seed = 1;
  for (float& sample : in)
    sample = static_cast<float>(static_cast<int16_t>((seed = seed * 1664525u + 1013904223u) >> 16)) / 4;
  std::vector<float> out(2000);
  bool headed = false;
  for (const uint32_t from : hz) {
    for (const uint32_t to : hz) {
      if (from == to) continue;
      std::vector<Contestant> all;
      const size_t count = from / 50;
      const ResamplerFilter filter(from, to);
      Resampler own(filter);
      all.push_back({"own", [&] { (void)own.process(in.data(), count, out.data()); }});
#ifdef HAVE_SPEEX
      for (const int quality : {2, 5}) {
        int error = 0;
        SpeexResamplerState* state = speex_resampler_init(1, from, to, quality, &error);
        all.push_back({"speex q" + std::to_string(quality), [&in, &out, state, count] {
                         spx_uint32_t taken = static_cast<spx_uint32_t>(count);
                         spx_uint32_t made = 2000;
                         speex_resampler_process_float(state, 0, in.data(), &taken, out.data(), &made);
                       }});
      }
#endif
#ifdef HAVE_SOXR
      soxr_error_t soxr_error = nullptr;
      const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
      soxr_t soxr = soxr_create(from, to, 1, &soxr_error, nullptr, &quality, nullptr);
      all.push_back({"soxr HQ", [&in, &out, soxr, count] {
                       size_t taken = 0;
                       size_t made = 0;
                       (void)soxr_process(soxr, in.data(), count, &taken, out.data(), 2000, &made);
                     }});
#endif
#ifdef HAVE_SAMPLERATE
      int src_error = 0;
      SRC_STATE* src = src_new(SRC_SINC_BEST_QUALITY, 1, &src_error);
      all.push_back({"src best", [&in, &out, src, count, from, to] {
                       SRC_DATA data = {in.data(), out.data(), static_cast<long>(count),      2000, 0,
                                        0,         0,          static_cast<double>(to) / from};
                       (void)src_process(src, &data);
                     }});
#endif
      if (!headed) {
        std::printf("%-16s", "ns an output");
        for (const Contestant& each : all) std::printf("%12s", each.name.c_str());
        std::printf("%12s\n", "delay ms");
        headed = true;
      }
      for (int round = 0; round < rounds; round++) {
        for (Contestant& each : all) each.times.push_back(once(each.block, to / 50));
      }
      std::printf("%5u to %5u  ", from, to);
      for (Contestant& each : all) {
        std::sort(each.times.begin(), each.times.end());
        std::printf("%12.2f", each.times[rounds / 2]);
      }
      std::printf("%12.2f\n", filter.delay_sec() * 1000);
    }
  }
  return 0;
}
