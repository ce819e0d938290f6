#include "test/kernel/distortion.h"

#include <cmath>

#include "test/check.h"
#include "test/plane/drifting_call.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

constexpr double tone_hz = 1020;  // ITU-T O.132's, of no simple ratio to any rate
constexpr double tone_dbov = -13;
constexpr size_t frames = 100;
constexpr size_t settled_frames = 10;

}  // namespace

TEST("the measure of distortion finds a known harmonic and a known offset's absence") {
  std::vector<int16_t> pcm(16000);
  for (size_t i = 0; i < pcm.size(); i++) {
    const double turn = 2 * tone_pi * tone_hz * static_cast<double>(i) / 8000;
    pcm[i] = static_cast<int16_t>(std::lrint(500 + 10000 * std::sin(turn + 0.7) + 100 * std::sin(3 * turn)));
  }
  CHECK(std::fabs(thd_n_db(pcm, 0, tone_hz, 8000) + 40) < 0.05);
}

TEST(
    "a tone resampled between any two rates and mixed with a loud listener's own voice is heard with at most -80 dB of "
    "distortion and noise") {
  FilterBank filters;
  for (size_t from = 0; from < rates; from++) {
    const std::vector<int16_t> said = sine(tone_hz, tone_dbov, rate_table_hz[from], frames);
    for (size_t to = 0; to < rates; to++) {
      const std::vector<int16_t> heard = heard_in_room(said, from, to, filters);
      CHECK(heard.size() == rate_samples(to) * frames);
      CHECK(thd_n_db(heard, rate_samples(to) * settled_frames, tone_hz, rate_table_hz[to]) <= -80);
    }
  }
}

TEST("a room adds nothing to what G.711 and G.722 themselves do to a tone") {
  FilterBank filters;
  const struct {
    Codec codec;
    double most_db;
  } codecs[] = {{Codec::pcmu, -37.5}, {Codec::pcma, -38}, {Codec::g722, -46}};
  for (const auto& [codec, most_db] : codecs) {
    const size_t to = rate_index(codec_rate_hz(codec));
    const size_t settled = rate_samples(to) * settled_frames;
    const double alone = thd_n_db(through(codec, sine(tone_hz, tone_dbov, rate_table_hz[to], frames)), settled, tone_hz,
                                  rate_table_hz[to]);
    CHECK(alone <= most_db);
    for (size_t from = 0; from < rates; from++) {
      const std::vector<int16_t> mixed =
          heard_in_room(sine(tone_hz, tone_dbov, rate_table_hz[from], frames), from, to, filters);
      CHECK(thd_n_db(through(codec, mixed), settled, tone_hz, rate_table_hz[to]) <= alone + 0.5);
    }
  }
}

TEST(
    "ten minutes of 200 ppm, 2 % loss and 40 ms of jitter: the delay stays, and what is not invented sounds as its "
    "codec does") {
  for (const double ppm : {200.0, -200.0}) {  // 120 ms in all
    const Heard heard = DriftingCall({ppm, 0.02, 40}).run(10);
    for (const double delay : heard.delay_ms) CHECK(delay > 30 && delay <= 100);
    CHECK(heard.invented_part > 0.01 && heard.invented_part < 0.03);
    CHECK(heard.codec_snr_db > 33);
    CHECK(heard.snr_db > heard.codec_snr_db - 0.5);
    CHECK(heard.disturbed_part < 0.02);
    CHECK(heard.all_snr_db > 31);
  }
}

TEST("the comparison with what was said tells a network that loses much from one that loses nothing") {
  const Heard clean = DriftingCall({0, 0, 0}).run(1);
  const Heard bad = DriftingCall({0, 0.2, 0}).run(1);
  CHECK(clean.invented_part == 0 && clean.snr_db == clean.codec_snr_db && clean.all_snr_db == clean.snr_db);
  CHECK(bad.invented_part > 0.15 && bad.all_snr_db < clean.all_snr_db - 5);
}
