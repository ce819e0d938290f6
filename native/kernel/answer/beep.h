// The beep after the greeting of an answering machine: one steady tone of about 400 to 2000 Hz for at least 100 ms,
// after which the line falls silent. Each frame of 20 ms is judged by itself:
//
//   coarse frequency: the strongest of a comb 50 Hz apart ─► exact: by the turn of the phase between the frame's halves
//   ─► how much of the frame's power is a sine of that frequency
//
// A voice has harmonics and glides, music goes on, keys (DTMF) are two tones: none is one steady sine with silence
// behind it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

class BeepDetector {
 public:
  /** Takes 20 ms of 8 kHz (160 samples) and its level. True when a beep is over. */
  bool frame(const float* pcm, float dbov);
  /** Whether a steady tone is heard that may become a beep. */
  bool sounding() const { return frames_ >= 2 || quiet_frames_ > 0; }

 private:
  static constexpr size_t frame_samples = 160;
  struct Tone {
    float hz = 0;
    float purity = 0;  // the part of the frame's power that is the tone, 0 to 1
  };

  static Tone measure(const float* pcm);
  bool follows(const Tone& tone, float dbov) const;
  bool over(float dbov);

  uint32_t frames_ = 0;        // of the tone, one after the other
  uint32_t quiet_frames_ = 0;  // after a tone that was long enough: frames that were looked at since its end
  float hz_ = 0;
  float dbov_ = 0;
};

}  // namespace sidetone
