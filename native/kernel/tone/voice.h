// Voice activity by level: any sound over an adaptive noise floor is speech. It takes one frame of 20 ms at a time; the
// count of frames is its clock.
//
// The floor falls to a quieter frame at once and rises slowly under a louder one, within bounds. What keeps its level
// for a second is noise and becomes the floor at once: a car or an office behind somebody who was muted. A sound that
// is louder than any plausible noise stays speech however long it lasts.
#pragma once
#include <cstdint>

namespace sidetone {

class VoiceActivity {
 public:
  struct Rule {
    float sensitivity = 0.5f;  // 0 to 1; higher hears more
    uint32_t onset_ms = 100;
    uint32_t release_ms = 500;
    uint32_t unheard_ms = 0;  // time without any audio that ends speech; 0: no audio is silence
  };
  enum class Change : uint8_t { none, began, ended };

  VoiceActivity() = default;
  explicit VoiceActivity(const Rule& rule) : rule_(rule) {}

  /** Takes the level of one frame (dBov); `heard` is false where no audio came at all. */
  Change frame(float dbov, bool heard) {
    clock_ms_ += frame_ms;
    if (heard) unheard_ms_ = 0;
    if (loud(dbov, heard)) {
      if (run_ms_ == 0) gap_ms_ = clock_ms_ - frame_ms - last_sound_ms_;
      run_ms_ += frame_ms;
      quiet_ms_ = 0;
      if (talking_) {
        last_sound_ms_ = clock_ms_;
      } else if (run_ms_ >= rule_.onset_ms) {
        talking_ = true;
        silence_before_ms_ = gap_ms_;
        last_sound_ms_ = clock_ms_;
        return Change::began;
      }
      return Change::none;
    }
    if (!talking_) {  // a dip within the onset costs as much as it lasts
      run_ms_ = run_ms_ > frame_ms ? run_ms_ - frame_ms : 0;
      return Change::none;
    }
    const bool missed = !heard && rule_.unheard_ms > 0;
    if (missed) unheard_ms_ += frame_ms;
    else quiet_ms_ += frame_ms;
    if (missed ? unheard_ms_ < rule_.unheard_ms : quiet_ms_ < rule_.release_ms) return Change::none;
    (void)stop();
    return Change::ended;
  }

  /** Ends speech at once (mute, leave). Whether there was any. */
  bool stop() {
    const bool was = talking_;
    talking_ = false;
    run_ms_ = 0;
    quiet_ms_ = 0;
    unheard_ms_ = 0;
    return was;
  }

  bool talking() const { return talking_; }
  /** When speech began: the silence from the last sound before it, or since the start. */
  uint64_t silence_before_ms() const { return silence_before_ms_; }

  static constexpr uint32_t frame_ms = 20;

 private:
  static constexpr float floor_max = -48.0f;
  static constexpr float rise = 0.06f;  // dB a frame: 3 dB a second
  static constexpr float steady_db = 6.0f;
  static constexpr float steady_floor_max = -40.0f;
  static constexpr uint8_t steady_frames = 50;

  bool loud(float dbov, bool heard) {
    if (!heard) {
      block_frames_ = 0;
      return false;
    }
    const float margin = 15.0f - 12.0f * rule_.sensitivity;
    const float least = -42.0f - 20.0f * rule_.sensitivity;
    // Digital silence says nothing of the noise that comes after it: a lower floor would hear the same.
    const float floor_min = least - margin;
    if (dbov < floor_) floor_ = dbov < floor_min ? floor_min : dbov;
    else if (floor_ < floor_max) floor_ += rise;
    steady(dbov);
    return dbov > floor_ + margin && dbov > least;
  }

  /** Lifts the floor to a level that was kept for a second. */
  void steady(float dbov) {
    if (block_frames_ == 0) block_least_ = block_most_ = dbov;
    block_least_ = dbov < block_least_ ? dbov : block_least_;
    block_most_ = dbov > block_most_ ? dbov : block_most_;
    if (++block_frames_ < steady_frames) return;
    block_frames_ = 0;
    if (block_most_ - block_least_ > steady_db) return;
    const float level = block_most_ < steady_floor_max ? block_most_ : steady_floor_max;
    if (level > floor_) floor_ = level;
  }

  Rule rule_;
  float floor_ = -60.0f;
  float block_least_ = 0;  // of the second that is looked at, in dBov
  float block_most_ = 0;
  uint8_t block_frames_ = 0;
  bool talking_ = false;
  uint32_t run_ms_ = 0;
  uint32_t quiet_ms_ = 0;
  uint32_t unheard_ms_ = 0;
  uint64_t clock_ms_ = 0;
  uint64_t last_sound_ms_ = 0;
  uint64_t gap_ms_ = 0;
  uint64_t silence_before_ms_ = 0;
};

}  // namespace sidetone
