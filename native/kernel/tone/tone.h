// DTMF (ITU-T Q.23, receiver limits of Q.24) in audio of 8 or 16 kHz.
//
//          1209 1336 1477 1633
//    697    1    2    3    A
//    770    4    5    6    B
//    852    7    8    9    C
//    941    *    0    #    D
//
// Every 5 ms the last 20 ms are judged:
//
//  * The strongest frequency of each group must be there, within tolerance and twist.
//  * The two together must be nearly all of the sound, up to 4 kHz.
//  * A second harmonic, which voices have and senders of tones have not, spoils them.
//
// A key is there after four such windows in a row, and over after eight without. A dial tone is taken out first, for a
// second opinion. Tolerance is measured by the turn of the phase between two halves of the window: a bin of a Fourier
// transform this short could not tell 1.5 % (accepted) from 3.5 % (refused) at 697 Hz.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernel/tone/dial_tone.h"
#include "kernel/tone/half_band.h"
#include "kernel/tone/tone_bank.h"

namespace sidetone {

/** The last 20 ms of sound and what they hold of each frequency. */
class ToneWindow {
 public:
  /** Takes the next 5 ms, 40 samples, and what they hold. */
  void take(const float* pcm, const ToneStep& step);
  /** The power of all the sound, as amplitude squared of a sine. */
  float power() const;
  /** The power of the last 5 ms, likewise. */
  float newest_power() const;
  /** Forgets the sound, so that nothing is judged but what comes. */
  void reset();
  /** The key in the window, or 0. */
  char judge() const;

 private:
  using Bin = ToneBins::Bin;
  static constexpr size_t steps = tone_steps;

  void fit(size_t low, size_t high, size_t half, Bin& low_sine, Bin& high_sine) const;
  float steady(size_t index, Bin early, Bin late) const;
  float harmonic(float hz) const;
  Bin at(size_t index, size_t age) const { return bins_[(newest_ + 1 + age) % steps].of(index); }

  ToneBins bins_[steps];
  float energy_[steps] = {};
  size_t newest_ = 0;
  int16_t pcm_[steps * tone_step] = {};  // half of what floats take, as every 20 ms write all of it
};

class ToneDetector {
 public:
  struct Key {
    char key = 0;
    uint32_t duration_ms = 0;
  };

  /** `rate_hz` is 8000 or 16000. */
  explicit ToneDetector(uint32_t rate_hz);
  /** Takes samples; the count is a multiple of 5 ms. True, with `key`, when a key has ended; at most one in 20 ms. */
  bool process(const int16_t* pcm, size_t count, Key& key);
  /** The key that is down now, or 0. */
  char down() const { return down_ ? candidate_ : '\0'; }
  /** Ends a key that is down, because the sound is over. True, with `key`, when there was one. */
  bool finish(Key& key);

  /** How much of this object, from its beginning on, nearly every tick touches. */
  static constexpr std::ptrdiff_t touched_bytes = 32 + sizeof(DialTone) + sizeof(ToneWindow);

 private:
  bool step(const float* pcm, Key& key);
  bool follow(char heard, Key& key);
  void end(Key& key);

  const bool wide_;
  bool down_ = false;
  char candidate_ = 0;
  uint32_t hits_ = 0;
  uint32_t misses_ = 0;
  uint32_t length_ = 0;  // steps since the first hit
  DialTone dial_tone_;
  ToneWindow plain_;
  ToneWindow without_dial_tone_;
  HalfBand half_band_;
};

/** The sum of two sines: one key. */
class ToneGenerator {
 public:
  /**
   * `amplitude` of each of the two, in samples; `offset` stretches both frequencies (0.015 is 1.5 % high). An unknown
   * key is silence.
   */
  ToneGenerator(char key, uint32_t rate_hz, float amplitude, float offset = 0.0f);
  void generate(int16_t* out, size_t count);

 private:
  double step_[2] = {0, 0};
  double phase_[2] = {0, 0};
  float amplitude_;
};

}  // namespace sidetone
