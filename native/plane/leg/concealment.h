// Packet loss concealment: invents sound that goes on where the real sound ended.
//
// The last 22 ms are split into a filter (linear prediction: the shape of the mouth) and its excitation. The last
// period of the excitation is repeated and filtered again, so the sound goes on without a step, and in the colour it
// had. The level goes on falling as it did, and fades out within `fade_ms`. The real sound is led back over
// `lead_back_ms`. Where the packet after the loss is known before it is due, as the depth of the jitter buffer often
// allows, the same is done backwards from its beginning, and the two are cross-faded (`meet`).
//
// Every figure here was chosen by PESQ (`npm run bench -- media-concealment`). Noise in place of repeated periods, as
// is common for consonants, was worse in each case.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

class Concealment {
 public:
  /** Begins after the sound that ends at `end`; `history_ms` of it lie before. `rate_hz` is 8000, 16000 or 24000. */
  void begin(const int16_t* end, uint32_t rate_hz);
  /** Invents the next samples. */
  void make(int16_t* out, size_t count);
  /**
   * Leads the `count` invented samples of `pcm` over to the `known` real ones that follow in `after`. These are
   * continued backwards, and cross-faded in over all that is invented at constant power, whether the two are alike or
   * not. Either is at most 20 ms.
   */
  static void meet(int16_t* pcm, size_t count, const int16_t* after, size_t known, uint32_t rate_hz);
  /** Whether all that follows is silence. */
  bool faded() const { return made_ >= fade_samples(); }

  static constexpr size_t rate_max_khz = 24;
  /** Samples of the longest frame of 20 ms. */
  static constexpr size_t frame_max = 20 * rate_max_khz;
  /** How much sound before the loss is looked at. */
  static constexpr uint32_t history_ms = 30;
  /** The level is zero after so long: a longer loss is heard as such. */
  static constexpr uint32_t fade_ms = 80;
  /** How long the invented and the real sound are mixed when packets come again. */
  static constexpr uint32_t lead_back_ms = 3;
  /** How much sound the filter is taken from, and the most samples that it looks back at. */
  static constexpr uint32_t window_ms = 22;
  static constexpr size_t window_max = window_ms * rate_max_khz;
  static constexpr size_t order = 32;

 private:
  static constexpr size_t history_max = history_ms * rate_max_khz;

  size_t fade_samples() const { return fade_ms * rate_hz_ / 1000; }
  void find_period(const float* end);
  void predict(const float* end);
  void excite(const float* end);

  uint32_t rate_hz_ = 8000;
  size_t window_ = 0;             // samples of `window_ms`
  size_t period_ = 1;             // samples
  float falling_ = 1;             // what the level was multiplied with from one sample to the next
  float level_ = 1;               // what is left of it
  size_t made_ = 0;               // samples
  size_t at_ = 0;                 // place in the period
  float weights_[order] = {};     // of the samples before, the newest first
  float memory_[order + 1] = {};  // what the sound so far adds to the next samples; the last is always 0
  float excitation_[window_max] = {};
};

}  // namespace sidetone
