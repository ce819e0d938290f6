#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kernel/codec/g711.h"
#include "kernel/tone/tone.h"
#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;

namespace {

constexpr char all[] = "123A456B789C*0#D";

/** Sound as it would come over a G.711 line. */
class Line {
 public:
  explicit Line(uint32_t rate_hz = 8000) : rate_hz_(rate_hz) {}
  void silence(double ms) { pcm_.resize(pcm_.size() + samples(ms)); }
  void key(char key, double ms, float amplitude = 4000, float offset = 0) {
    std::vector<int16_t> tone(samples(ms));
    ToneGenerator(key, rate_hz_, amplitude, offset).generate(tone.data(), tone.size());
    pcm_.insert(pcm_.end(), tone.begin(), tone.end());
  }
  /** One key of two amplitudes. */
  void twisted(double low_hz, double high_hz, double low, double high, double ms) {
    for (size_t i = 0, n = samples(ms); i < n; i++) {
      const double t = static_cast<double>(i) / rate_hz_;
      pcm_.push_back(static_cast<int16_t>(
          std::lrint(low * std::sin(2 * M_PI * low_hz * t) + high * std::sin(2 * M_PI * high_hz * t))));
    }
  }
  /** Adds a tone to all there is, up to an instant. */
  void add(double hz, double amplitude, double until_ms) {
    for (size_t i = 0; i < pcm_.size() && static_cast<double>(i) * 1000 / rate_hz_ < until_ms; i++) {
      const double t = static_cast<double>(i) / rate_hz_;
      pcm_[i] = static_cast<int16_t>(std::lrint(pcm_[i] + amplitude * std::sin(2 * M_PI * hz * t)));
    }
  }
  void noise(double amplitude, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, amplitude);
    for (int16_t& sample : pcm_) sample = static_cast<int16_t>(std::lrint(sample + normal(random)));
  }
  std::vector<ToneDetector::Key> detect(bool g711 = true) {
    silence(100);
    pcm_.resize(pcm_.size() / (rate_hz_ / 50) * (rate_hz_ / 50));
    if (g711) {
      std::vector<uint8_t> octets(pcm_.size());
      mulaw_encode(pcm_.data(), octets.data(), pcm_.size());
      mulaw_decode(octets.data(), pcm_.data(), pcm_.size());
    }
    ToneDetector detector(rate_hz_);
    std::vector<ToneDetector::Key> found;
    ToneDetector::Key key;
    for (size_t at = 0; at < pcm_.size(); at += rate_hz_ / 50) {
      if (detector.process(pcm_.data() + at, rate_hz_ / 50, key)) found.push_back(key);
    }
    return found;
  }
  std::string keys() {
    std::string text;
    for (const auto& key : detect()) text += key.key;
    return text;
  }

 private:
  size_t samples(double ms) const { return static_cast<size_t>(ms * rate_hz_ / 1000); }
  uint32_t rate_hz_;
  std::vector<int16_t> pcm_;
};

/** A step of noise, louder with each seed. */
std::vector<float> noise(uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> sample(-100.0f * static_cast<float>(seed), 100.0f * static_cast<float>(seed));
  std::vector<float> pcm(tone_step);
  for (float& each : pcm) each = sample(random);
  return pcm;
}

bool near(float a, double b, double scale) { return std::fabs(a - b) < 1e-5 * scale; }

}  // namespace

TEST("a step holds of each frequency what its sums with cosine and sine are, on every instruction set") {
  for (const Width width : {Width::portable, Width::avx2}) {
    if (width > kernel_width()) continue;
    const ToneForms forms = tone_forms(width);
    for (uint32_t seed = 1; seed < 300; seed++) {
      const std::vector<float> pcm = noise(seed);
      ToneStep step;
      forms.correlate(tone_bank(), pcm.data(), step);
      double energy = 0;
      for (const float sample : pcm) energy += static_cast<double>(sample) * sample;
      const double loud = std::sqrt(energy) * tone_step;
      CHECK(near(step.energy, energy, energy));
      for (size_t k = 0; k < tones; k++) {
        double keys[2] = {};
        double dial[2] = {};
        for (size_t i = 0; i < tone_step; i++) {
          keys[0] += pcm[i] * std::cos(tone_angle(tone_hz[k], i));
          keys[1] -= pcm[i] * std::sin(tone_angle(tone_hz[k], i));
          dial[0] += pcm[i] * std::cos(tone_angle(dial_hz[k], i));
          dial[1] -= pcm[i] * std::sin(tone_angle(dial_hz[k], i));
        }
        CHECK(near(step.keys.re[k], keys[0], loud) && near(step.keys.im[k], keys[1], loud));
        CHECK(near(step.dial.re[k], dial[0], loud) && near(step.dial.im[k], dial[1], loud));
      }
    }
  }
}

TEST("the power in a window is that of its four steps together, on every instruction set") {
  for (const Width width : {Width::portable, Width::avx2}) {
    if (width > kernel_width()) continue;
    ToneStep steps[tone_steps];
    std::vector<float> pcm;
    for (uint32_t j = 0; j < tone_steps; j++) {
      const std::vector<float> part = noise(7 + j);
      tone_bank().correlate(part.data(), steps[j]);
      pcm.insert(pcm.end(), part.begin(), part.end());
    }
    const ToneBins* window[tone_steps] = {&steps[0].keys, &steps[1].keys, &steps[2].keys, &steps[3].keys};
    float power[tones];
    tone_forms(width).powers(tone_bank(), window, power);
    for (size_t k = 0; k < tones; k++) {
      double re = 0;
      double im = 0;
      for (size_t i = 0; i < pcm.size(); i++) {
        re += pcm[i] * std::cos(tone_angle(tone_hz[k], i));
        im -= pcm[i] * std::sin(tone_angle(tone_hz[k], i));
      }
      CHECK(near(power[k], re * re + im * im, 1e3 * static_cast<double>(pcm.size()) * pcm.size()));
    }
  }
}

TEST("a dial tone is followed by what is left without what was expected, on every instruction set") {
  for (const Width width : {Width::portable, Width::avx2}) {
    if (width > kernel_width()) continue;
    ToneBins sines;
    for (uint32_t seed = 1; seed < 100; seed++) {
      const std::vector<float> pcm = noise(seed);
      ToneStep heard;
      ToneStep left;
      float rest[tone_step];
      tone_bank().correlate(pcm.data(), heard);
      DialTone::remove(sines, pcm.data(), rest);
      tone_bank().correlate(rest, left);
      ToneBins moved;
      double power = 0;
      for (size_t k = 0; k < tones; k++) {
        moved.re[k] = sines.re[k] + 0.008f * left.dial.re[k];
        moved.im[k] = sines.im[k] + 0.008f * left.dial.im[k];
        power += moved.re[k] * moved.re[k] + moved.im[k] * moved.im[k];
      }
      CHECK(near(follow_form(width)(heard.dial, sines), power, 100 * (1 + power)));
      for (size_t k = 0; k < tones; k++) {
        const double turn = tone_angle(dial_hz[k], tone_step) - tone_angle(dial_hz[k], 0);
        CHECK(near(sines.re[k], moved.re[k] * std::cos(turn) - moved.im[k] * std::sin(turn), 1000 * seed));
        CHECK(near(sines.im[k], moved.re[k] * std::sin(turn) + moved.im[k] * std::cos(turn), 1000 * seed));
      }
    }
  }
}

TEST("every key is heard once at 40 ms on and 40 ms off, at any phase of the frames, at 8 and 16 kHz") {
  for (const uint32_t rate : {8000u, 16000u}) {
    for (int shift = 0; shift < 40; shift++) {
      Line line(rate);
      line.silence(50 + shift * 0.5);
      for (const char* key = all; *key != 0; key++) {
        line.key(*key, 40);
        line.silence(40);
        line.key(*key, 40);
        line.silence(40);
      }
      std::string expected;
      for (const char* key = all; *key != 0; key++) expected += std::string(2, *key);
      CHECK(line.keys() == expected);
    }
  }
}

TEST("the duration of a key is told within 10 ms") {
  for (const int ms : {45, 80, 100, 250, 1000}) {
    Line line;
    line.silence(33);
    line.key('5', ms);
    const auto found = line.detect();
    CHECK(found.size() == 1);
    CHECK(std::abs(static_cast<int>(found[0].duration_ms) - ms) <= 10);
  }
}

TEST("tones of 23 ms are none; an interruption of 10 ms does not make two keys of one") {
  for (int shift = 0; shift < 40; shift++) {
    Line line;
    line.silence(50 + shift * 0.5);
    for (const char* key = all; *key != 0; key++) {
      line.key(*key, 23);
      line.silence(60);
    }
    CHECK(line.keys().empty());
    Line broken;
    broken.silence(50 + shift * 0.5);
    broken.key('8', 60);
    broken.silence(10);
    broken.key('8', 60);
    CHECK(broken.keys() == "8");
  }
}

TEST("frequencies 1.5 % off are taken, 3.5 % off are not, whichever way") {
  for (const char* key = all; *key != 0; key++) {
    for (const float offset : {-0.015f, 0.015f}) {
      Line line;
      line.silence(47);
      line.key(*key, 50, 4000, offset);
      CHECK(line.keys() == std::string(1, *key));
    }
    for (const float offset : {-0.05f, -0.04f, -0.035f, 0.035f, 0.04f, 0.05f}) {
      Line line;
      line.silence(47);
      line.key(*key, 100, 4000, offset);
      CHECK(line.keys().empty());
    }
  }
}

TEST("a twist of up to 8 dB either way is taken, of 11 and 13 dB is not; so is any level from 0 to -36 dBm0") {
  const double rows[] = {697, 770, 852, 941};
  const double columns[] = {1209, 1336, 1477, 1633};
  for (const uint32_t rate : {8000u, 16000u}) {
    for (const double row : rows) {
      for (const double column : columns) {
        const auto heard = [&](double low_db, double high_db) {
          Line line(rate);
          line.silence(47);
          line.twisted(row, column, 22'000 * std::pow(10, low_db / 20), 22'000 * std::pow(10, high_db / 20), 50);
          return line.detect().size();
        };
        CHECK(heard(-18, -10) == 1);
        CHECK(heard(-16, -10) == 1);
        CHECK(heard(-10, -18) == 1);
        CHECK(heard(-21, -10) == 0);
        CHECK(heard(-10, -23) == 0);
        CHECK(heard(-6, -6) == 1);
        CHECK(heard(-36, -36) == 1);
        CHECK(heard(-60, -60) == 0);
      }
    }
  }
}

TEST("keys are heard beside a dial tone at up to -15 dBm0, the first one although the dial tone stops in it") {
  const std::vector<std::vector<double>> dial_tones = {{350, 440}, {425}, {400}, {330, 440},
                                                       {350, 450}, {480}, {424}, {351, 439}};
  const auto level = [](double dbm0) { return 22'800 * std::pow(10, dbm0 / 20); };
  for (const uint32_t rate : {8000u, 16000u}) {
    for (const auto& tones_hz : dial_tones) {
      for (const double dial_dbm0 : {-30.0, -25.0, -18.0, -15.0}) {
        for (const double stops_ms : {330.0, 1e9}) {  // the first key lasts from 300 to 380 ms
          Line line(rate);
          line.silence(300);
          for (const char* key = all; *key != 0; key++) {
            line.key(*key, 80, static_cast<float>(level(-12)));
            line.silence(60);
          }
          for (const double hz : tones_hz) line.add(hz, level(dial_dbm0), stops_ms);
          CHECK(line.keys() == all);
        }
      }
    }
  }
}

TEST(
    "keys are heard through noise 12 dB below them in the band of a telephone, at 8 and 16 kHz, and noise alone has "
    "none") {
  for (const uint32_t rate : {8000u, 16000u}) {
    int lost = 0;
    for (uint32_t seed = 0; seed < 20; seed++) {
      Line line(rate);
      line.silence(50);
      for (const char* key = all; *key != 0; key++) {
        line.key(*key, 50);
        line.silence(50);
      }
      // White up to half of the rate, so at 16 kHz half of its power lies above the telephone's band.
      line.noise(4000 * std::pow(10, -12.0 / 20) * std::sqrt(rate / 8000.0), seed);
      lost += line.keys() == all ? 0 : 1;
      Line alone(rate);
      alone.silence(5000);
      alone.noise(3000, seed + 100);
      CHECK(alone.keys().empty());
    }
    CHECK(lost == 0);
  }
}

TEST("one tone alone, a chord with harmonics, and a voice-like buzz are no keys") {
  for (double hz = 300; hz < 1700; hz += 7) {
    Line single;
    single.twisted(hz, hz, 3000, 0, 200);
    CHECK(single.keys().empty());
  }
  for (double pitch = 80; pitch < 400; pitch += 3) {  // all harmonics of a pitch, as a vowel has
    Line buzz;
    std::vector<int16_t> none;
    for (double formant = 500; formant <= 1500; formant += 250) {
      Line vowel;
      vowel.twisted(std::round(700 / pitch) * pitch, std::round(formant / pitch) * pitch, 3000, 2500, 0);
      Line sum;
      sum.twisted(pitch * std::round(700 / pitch), 2 * pitch * std::round(700 / pitch), 4000, 2500, 200);
      CHECK(sum.keys().empty());
    }
  }
}

TEST("a leg tells keys heard in its audio, unless the same key comes as a telephone-event around it") {
  for (const bool events : {false, true}) {
    test::Bench bench;
    test::FarEnd* far = bench.open(Codec::pcmu, events);
    CHECK(far != nullptr && bench.plane->detect_tones(1, true));
    std::vector<std::string> told;
    for (int press = 0; press < 4; press++) {
      const char key = "15#5"[press];
      ToneGenerator tone(key, 8000, 4000);
      const uint32_t began = far->timestamp;
      for (int tick = 0; tick < 50; tick++) {
        int16_t pcm[160] = {};
        if (tick < 5) tone.generate(pcm, 160);
        std::vector<uint8_t> octets(160);
        mulaw_encode(pcm, octets.data(), 160);
        far->say(octets);
        if (press % 2 == 1 && tick >= 5 && tick < 8) {  // the end of the key, three times, by event too
          const uint32_t timestamp = far->timestamp;
          far->timestamp = began;
          far->payload_type = 101;
          far->say({5, 0x8a, 800 >> 8, 800 & 0xff});
          far->payload_type = 0;
          far->timestamp = timestamp;
        }
        bench.tick();
        for (const Notice& notice : bench.notices()) {
          if (notice.kind == NoticeKind::digit)
            told.push_back(std::string(1, static_cast<char>(notice.a)) + (notice.more[0] == 1 ? " tone" : " event"));
        }
      }
    }
    const std::vector<std::string> both = {"1 tone", "5 event", "# tone", "5 event"};
    const std::vector<std::string> tones = {"1 tone", "5 tone", "# tone", "5 tone"};
    CHECK(told == (events ? both : tones));
  }
}
