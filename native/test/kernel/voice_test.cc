// Voice activity by level: how long steady noise counts as speech, and that sounds over it do for as long as they last.
#include <random>

#include "kernel/tone/voice.h"
#include "test/check.h"

using namespace sidetone;

namespace {

constexpr float silence_dbov = -127.0f;

/** Drives a detector with levels and counts the time that counted as speech. */
class Listener {
 public:
  explicit Listener(float sensitivity = 0.5f) : voice_({sensitivity, 100, 500}) {}

  /** A level that varies by half a decibel, as that of white noise does. Returns the ms of it that were talking. */
  uint32_t hear(float dbov, double seconds) {
    uint32_t talking_ms = 0;
    for (int i = 0; i < seconds * 50; i++) {
      const float level = dbov <= silence_dbov ? silence_dbov : dbov + varies_(random_);
      (void)voice_.frame(level, true);
      talking_ms += voice_.talking() ? VoiceActivity::frame_ms : 0;
    }
    return talking_ms;
  }

  /** Words of 240 ms with 160 ms between them, whose level rises and falls. */
  uint32_t words(float dbov, float between_dbov, double seconds) {
    uint32_t talking_ms = 0;
    for (int i = 0; i < seconds * 50; i++) {
      const int at = i % 20;
      const float level = at < 12 ? dbov - static_cast<float>((at - 6) * (at - 6)) / 6 : between_dbov;
      (void)voice_.frame(level + varies_(random_), true);
      talking_ms += voice_.talking() ? VoiceActivity::frame_ms : 0;
    }
    return talking_ms;
  }

 private:
  VoiceActivity voice_;
  std::mt19937 random_{7};
  std::normal_distribution<float> varies_{0, 0.5f};
};

}  // namespace

TEST("steady noise after digital silence is speech for at most two and a half seconds, up to -36 dBov") {
  for (const float noise_dbov : {-60.0f, -52.0f, -48.0f, -44.0f, -40.0f, -36.0f}) {
    Listener listener;
    (void)listener.hear(silence_dbov, 3);
    CHECK(listener.hear(noise_dbov, 8) <= 2500);
    CHECK(listener.hear(noise_dbov, 8) == 0);
  }
}

TEST("words over a noise are heard, and so is a loud sound that keeps its level, for as long as they last") {
  for (const float noise_dbov : {silence_dbov, -60.0f, -48.0f, -40.0f}) {
    Listener listener;
    (void)listener.hear(noise_dbov, 5);
    CHECK(listener.words(-22, noise_dbov, 6) >= 5800);
    (void)listener.hear(noise_dbov, 3);
    CHECK(listener.hear(-25, 20) >= 19'800);
  }
}

TEST("a quiet voice after a loud noise is heard again once the noise is gone") {
  Listener listener(1);
  (void)listener.hear(-40, 10);
  (void)listener.hear(-66, 1);
  CHECK(listener.words(-50, -66, 4) >= 3700);
}

TEST(
    "without any audio speech goes on for its own time where there is one, and ends as by silence where there is "
    "none") {
  for (const uint32_t unheard_ms : {0u, 1000u}) {
    VoiceActivity voice({0.5f, 100, 500, unheard_ms});
    const auto lasts = [&](bool heard) {
      for (int i = 0; i < 5; i++) (void)voice.frame(-20, true);
      uint32_t ms = VoiceActivity::frame_ms;
      while (voice.frame(silence_dbov, heard) == VoiceActivity::Change::none) ms += VoiceActivity::frame_ms;
      return ms;
    };
    CHECK(lasts(true) == 500);
    CHECK(lasts(false) == (unheard_ms == 0 ? 500 : 1000));
    // A packet in between begins the time without audio anew, and its silence is counted.
    for (int i = 0; i < 5; i++) (void)voice.frame(-20, true);
    for (int i = 0; i < 40 && unheard_ms > 0; i++)
      CHECK(voice.frame(silence_dbov, false) == VoiceActivity::Change::none);
    CHECK(voice.frame(silence_dbov, true) == VoiceActivity::Change::none);
    CHECK(lasts(true) == 500);
  }
}
