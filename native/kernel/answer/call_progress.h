// Tones of the network that are heard before anybody has answered: ringing that goes on behind a forwarded call or a
// switchboard, and busy tones (ITU-T E.180: one or two tones of about 350 to 500 Hz, for 0.25 s and longer). A voice
// there has most of its power elsewhere, in its other harmonics.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

class CallProgress {
 public:
  /** Takes 20 ms of 8 kHz (160 samples). True while such a tone has lasted for `least_ms`. */
  bool frame(const float* pcm, bool audible);
  /** Frames of the tone so far, the ones before it was known among them; 0 without one. */
  uint32_t frames() const { return frames_; }

  static constexpr uint32_t least_ms = 240;

 private:
  static constexpr size_t frame_samples = 160;

  uint32_t frames_ = 0;
};

}  // namespace sidetone
