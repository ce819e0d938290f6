// Parties of a call without a network: their far ends say what a test gives them.
#pragma once
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "plane/participant.h"
#include "plane/room/room.h"
#include "test/plane/recording_files.h"

namespace sidetone::test {

/** A party whose far end says what a test gives it. */
class Party : public Participant {
 public:
  explicit Party(uint32_t id, uint32_t hz = 8000) : Participant(id, hz / 50), hz_(hz) {}

  uint32_t rate_hz() const override { return hz_; }
  void take(const Now& now, Notices& notices) override {
    taken++;
    if (!wanted()) return;
    std::copy_n(said_now.begin(), count(), said());
    heard(count(), says, now, notices);
  }
  void give(const Now& now, Notices& notices) override {
    given++;
    int16_t pcm[frame_max] = {};
    room_only = hears_room_only();
    hears_something = hears(pcm, count(), now, notices);
    hears_now.assign(pcm, pcm + (hears_something ? count() : 0));
    settle(notices);
  }
  void skip(uint32_t frames) override { pause(frames); }

  /** Says one level from now on; 0 is what is not heard at all. */
  void say(int16_t level) {
    said_now.assign(frame_max, level);
    says = level != 0;
  }
  void turn(uint32_t hz) {
    hz_ = hz;
    say_up_to(count());
  }
  size_t count() const { return hz_ / 50; }
  bool is_wanted() const { return wanted(); }

  std::vector<int16_t> said_now = std::vector<int16_t>(frame_max, 0);
  bool says = false;
  bool records = true;
  bool room_only = false;
  bool hears_something = false;
  std::vector<int16_t> hears_now;
  std::vector<bool> attentions;
  uint32_t taken = 0;  // ticks
  uint32_t given = 0;

 protected:
  void attention(bool wanted) override { attentions.push_back(wanted); }
  bool recordable(const Now&, bool) const override { return records; }

 private:
  uint32_t hz_;
};

/** Parties that are recorded, on virtual time. */
struct Studio {
  Folder folder;
  Notices notices;
  FilterBank filters;
  Now now{1'000'000'000, 1'700'000'000'000'000};

  RecorderOptions options(const char* name, uint32_t id = 7, bool voices = false, uint32_t rate_hz = 8000) {
    RecorderOptions options;
    options.id = id;
    options.path = folder.file(name);
    options.rate_hz = rate_hz;
    options.voices = voices;
    options.rule = {0.5f, 100, 500, 0};
    return options;
  }
  void tick(Party& party, int ticks = 1) {
    for (int i = 0; i < ticks; i++, now.us += tick_us) party.tick(now, notices);
  }
  void tick(Room& room, int ticks = 1) {
    for (int i = 0; i < ticks; i++, now.us += tick_us) room.tick(now, notices);
  }
  size_t told(NoticeKind kind) const {
    return static_cast<size_t>(
        std::count_if(notices.begin(), notices.end(), [kind](const Notice& notice) { return notice.kind == kind; }));
  }
  /** Waits until so many recordings have ended, while who is recorded is ticked. At most ten seconds. */
  template <typename Recorded>
  bool ended(Recorded& recorded, size_t count = 1) {
    for (int i = 0; i < 1000 && told(NoticeKind::recording_ended) < count; i++) {
      tick(recorded);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return told(NoticeKind::recording_ended) == count;
  }
};

/** The last sample of each frame of 20 ms at 8 kHz. */
inline std::vector<int16_t> frames(const std::string& path) {
  std::vector<int16_t> all;
  const Wav wav = read_wav(path);
  for (size_t at = frame_units; wav.whole && at <= wav.samples.size(); at += frame_units)
    all.push_back(wav.samples[at - 1]);
  return all;
}

inline bool is_silent(const Party& party) {
  return std::all_of(party.hears_now.begin(), party.hears_now.end(), [](int16_t sample) { return sample == 0; });
}

/** A playback of one level. */
inline void play(Player& player, uint32_t playback, int16_t level, size_t count) {
  const std::vector<int16_t> pcm(count, level);
  player.play(playback, 8000, 100);
  (void)player.feed(playback, pcm.data(), pcm.size());
  player.finish(playback);
}

}  // namespace sidetone::test
