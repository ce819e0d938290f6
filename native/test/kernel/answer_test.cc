// Answering machine detection on sounds of our own: words are bursts of noise, a beep is a sine.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "kernel/answer/answer_detector.h"
#include "test/check.h"

using namespace sidetone;

namespace {

constexpr double pi = 3.14159265358979323846;

/** A line at one rate: what is added to it is heard over its noise. */
class Line {
 public:
  explicit Line(double noise = 10, uint32_t rate_hz = 8000) : noise_(noise), rate_(rate_hz) {}

  Line& silence(double seconds) {
    for (size_t i = 0; i < samples(seconds); i++) add(0);
    return *this;
  }
  /** Words of 250 ms with 80 ms between them. */
  Line& words(double seconds, double amplitude = 6000) {
    for (size_t i = 0; i < samples(seconds); i++) {
      const double at = std::fmod(static_cast<double>(i) / rate_, 0.33);
      add(at < 0.25 ? amplitude * uniform_(random_) : 0);
    }
    return *this;
  }
  /** A pair of tones of one level, as ringing is in several countries. */
  Line& pair(double seconds, double low_hz, double high_hz, double amplitude = 6000) {
    for (size_t i = 0; i < samples(seconds); i++) {
      const double at = 2 * pi * static_cast<double>(i) / rate_;
      add(amplitude / 2 * (std::sin(low_hz * at) + std::sin(high_hz * at)));
    }
    return *this;
  }
  Line& tone(double seconds, double hz, double amplitude = 6000, double glide_hz = 0) {
    double phase = 0;
    for (size_t i = 0; i < samples(seconds); i++) {
      phase += 2 * pi * (hz + glide_hz * static_cast<double>(i) / rate_) / rate_;
      add(amplitude * std::sin(phase));
    }
    return *this;
  }

  struct Verdict {
    int decided = 0;
    Answerer answerer = Answerer::unknown;
    uint32_t after_ms = 0;
    int ended = 0;
    bool beep = false;
    uint32_t ended_ms = 0;
  };
  Verdict judge(uint32_t timeout_ms = 5000) const {
    AnswerDetector detector(timeout_ms);
    Verdict verdict;
    const size_t count = rate_ / 50;
    for (size_t at = 0; at + count <= pcm_.size(); at += count) {
      const AnswerDetector::Step step = detector.frame(&pcm_[at], count, true);
      if (step.decided) {
        verdict.decided++;
        verdict.answerer = step.answerer;
        verdict.after_ms = detector.clock_ms();
      }
      if (!step.greeting_ended) continue;
      verdict.ended++;
      verdict.beep = step.beep;
      verdict.ended_ms = detector.clock_ms();
    }
    return verdict;
  }

 private:
  size_t samples(double seconds) const { return static_cast<size_t>(seconds * rate_); }
  void add(double sample) { pcm_.push_back(static_cast<int16_t>(std::lrint(sample + noise_ * uniform_(random_)))); }

  double noise_;
  uint32_t rate_;
  std::mt19937 random_{7};
  std::uniform_real_distribution<double> uniform_{-1, 1};
  std::vector<int16_t> pcm_;
};

bool is(const Line::Verdict& verdict, Answerer answerer) {
  return verdict.decided == 1 && verdict.answerer == answerer && (answerer == Answerer::machine || verdict.ended == 0);
}

}  // namespace

TEST("a short answer and a pause is a person, on a quiet line and a noisy one, told once and soon") {
  for (const double noise : {0.0, 10.0, 300.0, 1000.0}) {
    for (const double said : {0.15, 0.5, 1.0, 1.6}) {
      const auto verdict = Line(noise).silence(0.8).words(said).silence(5).judge();
      CHECK(is(verdict, Answerer::human));
      CHECK(verdict.after_ms >= (0.8 + said) * 1000 && verdict.after_ms <= (0.8 + said + 1.3) * 1000);
    }
  }
}

TEST("a long greeting is a machine, told while it speaks; its end is told once, with the beep or after a silence") {
  for (const double noise : {0.0, 10.0, 300.0}) {
    for (const uint32_t rate : {8000u, 16000u}) {
      const auto beep = Line(noise, rate).silence(0.5).words(6).silence(0.7).tone(0.3, 1000).silence(4).judge();
      CHECK(is(beep, Answerer::machine) && beep.after_ms < 3200);
      CHECK(beep.ended == 1 && beep.beep && beep.ended_ms >= 7400 && beep.ended_ms <= 7700);
      const auto none = Line(noise, rate).silence(0.5).words(6).silence(5).judge();
      CHECK(is(none, Answerer::machine));
      CHECK(none.ended == 1 && !none.beep && none.ended_ms >= 9300 && none.ended_ms <= 9700);
    }
  }
}

TEST("a beep is one steady tone of 400 to 2000 Hz and 100 ms with silence behind it; nothing else is one") {
  for (const double hz : {400.0, 440.0, 523.3, 777.7, 1000.0, 1400.0, 1999.0}) {
    for (const double seconds : {0.12, 0.2, 0.5, 2.0}) {
      for (const double amplitude : {600.0, 6000.0, 20000.0}) {
        const auto verdict = Line(20).words(3).silence(0.33).tone(seconds, hz, amplitude).silence(4).judge();
        CHECK(verdict.ended == 1 && verdict.beep);
      }
    }
  }
  const auto beeps = [](Line line) {
    const auto verdict = line.silence(6).judge();
    return verdict.ended == 1 && verdict.beep;
  };
  CHECK(!beeps(Line().words(3).tone(0.06, 1000)));                                           // too short
  CHECK(!beeps(Line().words(3).tone(0.3, 250)));                                             // too low
  CHECK(!beeps(Line().words(3).tone(0.3, 2500)));                                            // too high
  CHECK(!beeps(Line().words(3).tone(0.3, 800, 6000, 1500)));                                 // it glides
  CHECK(!beeps(Line().words(3).tone(0.3, 1000).words(1)));                                   // speech goes on
  CHECK(!beeps(Line().words(3).tone(0.1, 800).tone(0.1, 1000).tone(0.1, 1200).words(0.5)));  // a melody
}

TEST("a machine that only beeps is one, and a line that stays silent is nobody known") {
  const auto beep = Line().silence(1).tone(0.4, 1100).silence(3).judge();
  CHECK(is(beep, Answerer::machine) && beep.ended == 1 && beep.beep && beep.after_ms == beep.ended_ms);
  for (const uint32_t timeout_ms : {1000u, 5000u, 30'000u}) {
    const auto silent = Line(200).silence(31).judge(timeout_ms);
    CHECK(is(silent, Answerer::unknown) && silent.after_ms == timeout_ms);
  }
}

TEST("ringing and busy tones before the first word are nobody's; who answers behind them is told as ever") {
  const auto rings = [](Line& line, const char* country, int times) {
    for (int i = 0; i < times; i++) {
      if (country[0] == 'e') line.tone(1, 425).silence(i + 1 < times ? 4 : 1);
      if (country[0] == 'u') line.pair(2, 440, 480).silence(i + 1 < times ? 4 : 1);
      if (country[0] == 'b') line.pair(0.4, 400, 450).silence(0.2).pair(0.4, 400, 450).silence(i + 1 < times ? 2 : 1);
      if (country[0] == 'y') line.tone(0.5, 425).silence(0.5);
    }
  };
  for (const char* country : {"europe", "us", "britain", "yes, busy"}) {
    for (const uint32_t rate : {8000u, 16000u}) {
      for (const double noise : {0.0, 10.0, 100.0}) {
        Line nobody(noise, rate);
        rings(nobody, country, 4);
        CHECK(is(nobody.silence(20).judge(15'000), Answerer::unknown));
        Line person(noise, rate);
        rings(person, country, 2);
        CHECK(is(person.words(0.6, 2500).silence(3).judge(30'000), Answerer::human));
        Line machine(noise, rate);
        rings(machine, country, 2);
        const auto greeted = machine.words(6, 2500).silence(0.7).tone(0.3, 1000).silence(4).judge(30'000);
        CHECK(is(greeted, Answerer::machine) && greeted.ended == 1 && greeted.beep);
        Line beeps(noise, rate);
        rings(beeps, country, 2);
        CHECK(is(beeps.tone(0.4, 1100).silence(3).judge(30'000), Answerer::machine));
      }
    }
  }
}

TEST("a low beep after a word is one, although ringing has that tone") {
  const auto verdict = Line().words(1.2).silence(0.33).tone(1, 440).silence(3).judge();
  CHECK(is(verdict, Answerer::machine) && verdict.ended == 1 && verdict.beep);
}

TEST("other people far behind a voice are no part of what it says") {
  Line line(10);
  line.words(0.6, 400).words(0.5, 6000).words(4, 400);
  CHECK(is(line.judge(), Answerer::human));
}

TEST("a greeting that never ends is told as over after two minutes, and what nobody hears is silence") {
  const auto endless = Line().words(130).judge();
  CHECK(is(endless, Answerer::machine) && endless.ended == 1 && !endless.beep && endless.ended_ms <= 121'000);
  AnswerDetector detector(1000);
  const int16_t loud[160] = {20000};
  int decided = 0;
  for (int i = 0; i < 100; i++) decided += detector.frame(loud, 160, false).decided;
  CHECK(decided == 1 && detector.over() && detector.clock_ms() == 1000);
}
