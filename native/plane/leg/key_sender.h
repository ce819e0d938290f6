// Keys as they are sent: as telephone events (RFC 4733 §2.5) where they were agreed, else as tones in the audio (ITU-T
// Q.23). A tick of 20 ms asks for its part; a key, and the gap after it, are rounded up to whole ticks.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sidetone {

class KeySender {
 public:
  static constexpr uint32_t tick_ms = 20;
  /** How long a tone goes on falling after its key, and other sound falls and rises beside it. */
  static constexpr uint32_t ramp_ms = 5;
  static constexpr size_t batches_max = 16;
  static constexpr size_t keys_max = 64;

  /** The part of one tick. */
  struct Step {
    char key = 0;           // 0: no key in this tick
    uint32_t from_ms = 0;   // since the key began
    uint32_t until_ms = 0;  // at most 20 ms later
    bool last = false;      // the key ends in this tick
    char tone = 0;          // the key whose tone, or the fall of it, is in this tick; 0: none
    uint32_t sound_ms = 0;  // how long the key of the tone is
    uint32_t finished = 0;  // the number of the batch that is complete with this tick
  };

  /** Queues keys of 0-9, *, #, A-D; `w` waits 0.5 s, `W` 1 s. False when too many wait. */
  bool add(uint32_t number, std::string keys, uint32_t duration_ms, uint32_t gap_ms) {
    if (batches_.size() >= batches_max || keys.empty() || keys.size() > keys_max || number == 0) return false;
    batches_.push_back({number, std::move(keys), duration_ms, gap_ms});
    return true;
  }

  bool busy() const { return !batches_.empty(); }

  /** Goes on by one tick. */
  Step next() {
    Step step;
    if (batches_.empty()) return step;
    const Batch& batch = batches_.front();
    const char key = batch.keys[at_];
    const bool pause = key == 'w' || key == 'W';
    const uint32_t sound_ms = pause ? 0 : batch.duration_ms;
    const uint32_t whole_ms = pause ? (key == 'W' ? 1000 : 500) : ticks(sound_ms) * tick_ms + batch.gap_ms;
    if (elapsed_ms_ < sound_ms) {
      step.key = key;
      step.until_ms = elapsed_ms_ + tick_ms < sound_ms ? elapsed_ms_ + tick_ms : sound_ms;
      step.last = step.until_ms == sound_ms;
    }
    step.from_ms = elapsed_ms_;
    step.sound_ms = sound_ms;
    if (!pause && elapsed_ms_ < sound_ms + ramp_ms) step.tone = key;
    elapsed_ms_ += tick_ms;
    if (elapsed_ms_ < whole_ms) return step;
    elapsed_ms_ = 0;
    if (++at_ < batch.keys.size()) return step;
    step.finished = batch.number;
    at_ = 0;
    batches_.erase(batches_.begin());
    return step;
  }

  /** The event code of a key (RFC 4733 §3.2). */
  static uint8_t event_of(char key) {
    if (key >= '0' && key <= '9') return static_cast<uint8_t>(key - '0');
    if (key == '*') return 10;
    if (key == '#') return 11;
    return static_cast<uint8_t>(12 + (key - 'A'));
  }

  /** Puts the tone of a step in the place of what is heard in a tick, `count` samples. */
  static void tones(const Step& step, int16_t* pcm, size_t count) {
    static constexpr double low[] = {697, 770, 852, 941};
    static constexpr double high[] = {1209, 1336, 1477, 1633};
    static constexpr char layout[] = "123A456B789C*0#D";
    size_t place = 0;
    while (place < 15 && layout[place] != step.tone) place++;
    // -9 dBm0 and, for the high tone, 2 dB more: what ETSI ES 201 235-2 asks for.
    static constexpr double low_amplitude = 8'095, high_amplitude = 10'190, turn = 6.283185307179586;
    const double rate = static_cast<double>(count) * 1000.0 / tick_ms;
    const auto first = static_cast<size_t>(static_cast<double>(step.from_ms) * rate / 1000.0);
    const double sound = step.sound_ms, ramp = ramp_ms;
    for (size_t i = 0; i < count; i++) {
      const double t = static_cast<double>(first + i) / rate;
      const double level =
          low_amplitude * std::sin(turn * low[place / 4] * t) + high_amplitude * std::sin(turn * high[place % 4] * t);
      const double after = t * 1000 - sound;
      const double there = after < 0 ? 1 : std::max(0.0, 1 - after / ramp);
      const double beside = after < 0 ? std::max(0.0, 1 - t * 1000 / ramp) : 1 - there;
      pcm[i] = static_cast<int16_t>(std::clamp(level * there + pcm[i] * beside, -32768.0, 32767.0));
    }
  }

 private:
  struct Batch {
    uint32_t number;
    std::string keys;
    uint32_t duration_ms;
    uint32_t gap_ms;
  };

  static uint32_t ticks(uint32_t ms) { return (ms + tick_ms - 1) / tick_ms; }

  std::vector<Batch> batches_;
  size_t at_ = 0;
  uint32_t elapsed_ms_ = 0;
};

}  // namespace sidetone
