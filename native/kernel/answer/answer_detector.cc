#include "kernel/answer/answer_detector.h"

#include <algorithm>
#include <cmath>

#include "kernel/mix/level.h"

namespace sidetone {
namespace {

constexpr float least_dbov = -52;       // what is quieter is no speech, whatever the noise
constexpr float over_floor_db = 8;      // speech is louder than the noise by so much,
constexpr float floor_most_dbov = -28;  // but louder than this always counts
constexpr float under_peak_db = 16;
constexpr float peak_fall_db = 0.02f;        // a frame: 1 dB a second
constexpr float digital_silence_dbov = -80;  // says nothing of the line's noise
constexpr float unheard_dbov = -127;
constexpr uint32_t floor_block_frames = 150;
constexpr uint32_t word_ms = 60;  // a shorter sound is a click
constexpr uint32_t short_greeting_ms = 1000;
constexpr uint32_t long_greeting_ms = 2200;
constexpr uint32_t pause_short_ms = 900;  // after a greeting of up to `short_greeting_ms`
constexpr uint32_t pause_long_ms = 1100;  // after one of up to `long_greeting_ms`
constexpr uint32_t greeting_pause_ms = 3000;
constexpr uint32_t greeting_max_ms = 120'000;

}  // namespace

/** Takes the level of a frame, and gives what a frame must have to be speech. */
float AnswerDetector::threshold(float dbov) {
  float floor = floor_most_dbov;
  if (dbov > digital_silence_dbov) {
    powers_[heard_frames_++ % smooth_frames] = std::pow(10.0f, dbov / 10);
    if (heard_frames_ >= smooth_frames) {
      float sum = 0;
      for (const float power : powers_) sum += power;
      const float smooth = 10 * std::log10(sum / smooth_frames);
      if (heard_frames_ == smooth_frames) floor_ = floor_before_ = smooth;
      floor_ = std::min(floor_, smooth);
      peak_ = std::max(peak_ - peak_fall_db, smooth);
      if (++floor_frames_ == floor_block_frames) {
        floor_before_ = floor_;
        floor_ = smooth;
        floor_frames_ = 0;
      }
    }
  }
  if (heard_frames_ >= smooth_frames) floor = std::min(floor_, floor_before_);
  return std::max({least_dbov, std::min(floor + over_floor_db, floor_most_dbov), peak_ - under_peak_db});
}

void AnswerDetector::Speech::follow(bool loud, uint32_t clock_ms) {
  if (!loud) {
    run_ms = run_ms > frame_ms ? run_ms - frame_ms : 0;
    return;
  }
  run_ms = std::min(run_ms + frame_ms, 2 * word_ms);
  if (run_ms < word_ms) return;
  if (!spoken) began_ms = clock_ms - run_ms;
  spoken = true;
  ended_ms = clock_ms;
}

/** What was said so far, if speech is what is louder than that. */
AnswerDetector::Speech AnswerDetector::judge(float threshold) const {
  Speech speech;
  uint32_t clock_ms = 0;
  for (const float dbov : levels_) speech.follow(dbov > threshold, clock_ms += frame_ms);
  return speech;
}

AnswerDetector::Step AnswerDetector::decide(Answerer answerer) {
  phase_ = answerer == Answerer::machine ? Phase::greeting : Phase::over;
  Step step;
  step.decided = true;
  step.answerer = answerer;
  return step;
}

AnswerDetector::Step AnswerDetector::listen(bool beep) {
  if (beep) {
    Step step = decide(Answerer::machine);
    phase_ = Phase::over;
    step.greeting_ended = step.beep = true;
    return step;
  }
  if (speech_.spoken) {
    const uint32_t greeting_ms = speech_.ended_ms - speech_.began_ms;
    if (greeting_ms >= long_greeting_ms) return decide(Answerer::machine);
    const uint32_t pause_ms = greeting_ms <= short_greeting_ms ? pause_short_ms : pause_long_ms;
    if (clock_ms_ - speech_.ended_ms >= pause_ms && !beep_.sounding()) return decide(Answerer::human);
  }
  return clock_ms_ >= timeout_ms_ ? decide(Answerer::unknown) : Step();
}

AnswerDetector::Step AnswerDetector::greet(bool beep) {
  Step step;
  step.beep = beep;
  step.greeting_ended = beep || (clock_ms_ - speech_.ended_ms >= greeting_pause_ms && !beep_.sounding()) ||
                        clock_ms_ - speech_.began_ms >= greeting_max_ms;
  if (step.greeting_ended) phase_ = Phase::over;
  return step;
}

/** Writes the frame as 8 kHz. False for a rate of which no tone is heard. */
bool AnswerDetector::narrowed(const int16_t* pcm, size_t count, float* out) {
  if (count == 2 * narrow_samples) half_band_.halve(pcm, narrow_samples, out);
  else if (count == narrow_samples) std::copy(pcm, pcm + count, out);
  else return false;
  return true;
}

/** Looks for ringing before the first word. What it took for speech until it knew better is taken back. */
bool AnswerDetector::rings(const float* narrow, float dbov) {
  const bool known = progress_.frame(narrow, dbov > least_dbov);
  if (progress_.frames() == 1) {
    spoken_before_ = speech_.spoken;
    peak_before_ = peak_;
  }
  if (!known || spoken_before_) {
    ringing_ = ringing_ && (progress_.frames() > 0 || beep_.sounding());
    return false;
  }
  const size_t before = std::min<size_t>(progress_.frames() - 1, levels_.size());
  std::fill(levels_.end() - static_cast<ptrdiff_t>(before), levels_.end(), unheard_dbov);
  peak_ = peak_before_;
  ringing_ = true;
  return true;
}

AnswerDetector::Step AnswerDetector::frame(const int16_t* pcm, size_t count, bool heard) {
  if (over()) return Step();
  clock_ms_ += frame_ms;
  float dbov = heard ? level_dbov(pcm, count) : unheard_dbov;
  float narrow[narrow_samples];
  const bool has_tones = narrowed(pcm, count, narrow);
  const bool rings_now = phase_ == Phase::listening && has_tones && rings(narrow, dbov);
  const bool beep = has_tones && beep_.frame(narrow, dbov) && !ringing_;
  if (rings_now) dbov = unheard_dbov;
  const float least = threshold(dbov);
  if (phase_ == Phase::greeting) {
    speech_.follow(dbov > least, clock_ms_);
    return greet(beep);
  }
  levels_.push_back(dbov);
  speech_ = judge(least);
  return listen(beep);
}

}  // namespace sidetone
