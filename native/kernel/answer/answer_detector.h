// Tells whether a person or a machine has answered a call, by how long it speaks before it pauses: a person says
// "Hello?" and waits, a machine goes on. Then, of a machine, when its greeting is over, and whether with a beep.
//
//   listening ─first pause after a short greeting→ human          (the end)
//             ─long greeting, or a beep→ machine ─beep, or a long silence→ greeting over
//             ─timeout→ unknown                                   (the end)
//
// It takes 20 ms at a time; the count of frames is its clock. Speech is what is louder than the line's noise, which is
// the quietest 100 ms of the last seconds, and not much quieter than the loudest there was: a radio or other people
// behind a voice are no part of it. Since the voice may begin after them, what was said is judged anew with each frame,
// until it is known who answered. Ringing that is heard before the first word is nobody's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/answer/beep.h"
#include "kernel/answer/call_progress.h"
#include "kernel/tone/half_band.h"

namespace sidetone {

/** The numbers are shared with src/media/leg/plane-leg.ts. */
enum class Answerer : uint8_t { unknown = 0, human = 1, machine = 2 };

class AnswerDetector {
 public:
  /** What one frame changed. */
  struct Step {
    bool decided = false;  // `answerer` tells who, once
    Answerer answerer = Answerer::unknown;
    bool greeting_ended = false;  // of a machine, once
    bool beep = false;            // the greeting ended with one
  };

  /** `timeout_ms`: when nothing is known by then, that is told. */
  explicit AnswerDetector(uint32_t timeout_ms) : timeout_ms_(timeout_ms) { levels_.reserve(timeout_ms / frame_ms + 1); }

  /** Takes 20 ms of 8 or 16 kHz; `heard` is false where nothing came. Of any other rate no tone is ever heard. */
  Step frame(const int16_t* pcm, size_t count, bool heard);
  /** Whether nothing more will be told. */
  bool over() const { return phase_ == Phase::over; }
  /** Milliseconds since the beginning. */
  uint32_t clock_ms() const { return clock_ms_; }

  static constexpr uint32_t frame_ms = 20;

 private:
  enum class Phase : uint8_t { listening, greeting, over };
  static constexpr size_t smooth_frames = 5;
  static constexpr size_t narrow_samples = 160;  // 20 ms of 8 kHz, in which tones are looked for

  /** What was said: when it began, when its last word was over. */
  struct Speech {
    uint32_t run_ms = 0;  // of sound, without the dips; a word from `word_ms` on
    bool spoken = false;
    uint32_t began_ms = 0;
    uint32_t ended_ms = 0;

    void follow(bool loud, uint32_t clock_ms);
  };

  bool narrowed(const int16_t* pcm, size_t count, float* out);
  bool rings(const float* narrow, float dbov);
  float threshold(float dbov);
  Speech judge(float threshold) const;
  Step decide(Answerer answerer);
  Step listen(bool beep);
  Step greet(bool beep);

  const uint32_t timeout_ms_;
  Phase phase_ = Phase::listening;
  uint32_t clock_ms_ = 0;
  HalfBand half_band_;
  BeepDetector beep_;
  CallProgress progress_;
  bool ringing_ = false;        // the tone that is heard, or was last, is the network's
  bool spoken_before_ = false;  // something was said before that tone
  float peak_before_ = -60;

  // The line: powers of the last frames, and the least of their mean in this block of time and the one before.
  float powers_[smooth_frames] = {};
  uint32_t heard_frames_ = 0;
  float floor_ = 0;
  float floor_before_ = 0;
  uint32_t floor_frames_ = 0;
  float peak_ = -60;  // the loudest mean, falling slowly

  std::vector<float> levels_;  // of every frame until it is known who answered
  Speech speech_;
};

}  // namespace sidetone
