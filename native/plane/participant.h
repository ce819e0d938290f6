// One party of a call as rooms, recorders and detectors see it: PCM in, PCM out, 20 ms at a time. A tick has two
// halves: first every participant takes what its far end says, then, when rooms are mixed, each gives its far end what
// it hears.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/answer/answer_detector.h"
#include "kernel/tone/tone.h"
#include "plane/audio/player.h"
#include "plane/audio/rate.h"
#include "plane/cache.h"
#include "plane/notice.h"
#include "plane/now.h"
#include "plane/recording/recorder.h"

namespace sidetone {

class Leg;
class StreamLeg;
struct Seat;

/** Someone who needs the far end's sound as PCM. Without a listener nothing is decoded. */
class Listener {
 public:
  virtual ~Listener() = default;
  /** Takes one frame of 20 ms. `heard` is false when nothing was said. */
  virtual void hear(const int16_t* pcm, size_t count, uint32_t rate_hz, bool heard) = 0;
};

class Participant {
 public:
  /** `said_max`: samples of the longest frame that its far end can say. */
  Participant(uint32_t id, size_t said_max) : id_(id), said_max_(said_max) {}
  virtual ~Participant() = default;
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  uint32_t id() const { return id_; }
  /** The phase of the tick in which it is ticked (phases.h). */
  size_t phase() const { return phase_; }
  void phase(size_t phase) { phase_ = static_cast<uint32_t>(phase); }
  /** It was ticked in this tick already, and came to a phase that is yet to come: that leaves it out. */
  void sit_out(bool out) { sits_out_ = out; }
  bool sits_out() const { return sits_out_; }
  Player& player() { return player_; }
  Seat* seat() const { return seat_; }
  /** Sets its place in a room, which the room owns. nullptr: it is in no room. */
  void sit(Seat* seat);
  /** Gives the far end's sound to this listener. nullptr: to none. */
  void listen(Listener* listener);
  /** Turns the detection of keys (DTMF) in what the far end says on or off. */
  void detect_tones(bool on);
  /** Detects who has answered, from now on (kernel/answer/answer_detector.h). */
  void detect_answerer(uint32_t timeout_ms);

  /** Begins a recording of both directions, mixed. */
  void record(std::unique_ptr<Recorder> recorder);
  /** The recording of a number, or nullptr. */
  Recorder* recorder(uint32_t id);
  /** Gives all of its recordings away, because the participant ends. */
  std::vector<std::unique_ptr<Recorder>> take_recorders();

  /** Prefetches where the next frame of the far end's sound comes to lie, and what detects keys in it. */
  void fetch_said() const {
    if (said_) cache_fetch(said_.get(), said_fetched_bytes);
    if (detector_) cache_fetch(detector_.get(), ToneDetector::touched_bytes);
  }
  /** The rate of its PCM, in Hz. */
  virtual uint32_t rate_hz() const = 0;
  /** The first half of a tick: takes what the far end says. */
  virtual void take(const Now& now, Notices& notices) = 0;
  /** The second half of a tick: gives the far end what it hears. */
  virtual void give(const Now& now, Notices& notices) = 0;
  /** Jumps over so many frames, which the plane left out after a long stall. */
  virtual void skip(uint32_t frames) = 0;
  /** The participant as a leg, or nullptr. */
  virtual Leg* rtp() { return nullptr; }
  /** The participant as a stream leg, or nullptr. */
  virtual StreamLeg* stream() { return nullptr; }

  /** A whole tick, for a participant that is in no room. */
  void tick(const Now& now, Notices& notices) {
    take(now, notices);
    give(now, notices);
  }

 protected:
  /** Whether anyone needs what the far end says; `attention` is called when that changes. */
  bool wanted() const { return wanted_; }
  virtual void attention(bool wanted) = 0;
  /** Makes room for a far end that says longer frames from now on. */
  void say_up_to(size_t samples);
  /** The buffer for one frame of the far end's sound. */
  int16_t* said();
  /** Passes on what was written to `said()`: to detectors, recorders, the listener and the room. */
  void heard(size_t count, bool heard, const Now& now, Notices& notices);
  /** The key that is down in the sound now, or 0. */
  char tone_down() const { return detector_ ? detector_->down() : '\0'; }
  /** Tells a key that was heard in the sound. */
  virtual void tone(const ToneDetector::Key& key, const Now& now, Notices& notices);
  /** Fills what the far end hears: its room and its own playback. False when that is silence; `out` is then untouched.
   */
  bool hears(int16_t* out, size_t count, const Now& now, Notices& notices);
  /** Whether anyone records it. */
  bool taped() const { return !recorders_.empty(); }
  /** Whether its far end hears exactly what every silent member of the room hears. */
  bool hears_room_only() const;
  /** A tick, or several, in which it neither said nor heard anything. */
  void pause(uint32_t frames);
  /** Whether what was said and heard in this tick is worth recording. */
  virtual bool recordable(const Now& now, bool hears_something) const = 0;
  /** Ends a tick: tells what recordings and the room have to tell. */
  void settle(Notices& notices);

 private:
  void look();
  void judge(size_t count, bool heard, Notices& notices);
  bool over(Player& player, int16_t* out, size_t count, bool voiced) const;
  void tape(const int16_t* heard, size_t count, const Now& now, Notices& notices);

  static constexpr std::ptrdiff_t said_fetched_bytes = 160 * sizeof(int16_t);  // a frame at 8 kHz

  const uint32_t id_;
  uint32_t phase_ = 0;
  bool sits_out_ = false;
  size_t said_max_;
  Seat* seat_ = nullptr;
  Listener* listener_ = nullptr;
  bool wanted_ = false;
  bool tones_ = false;
  std::unique_ptr<ToneDetector> detector_;
  uint32_t detector_hz_ = 0;
  std::unique_ptr<AnswerDetector> answerer_;
  std::unique_ptr<int16_t[]> said_;
  std::vector<std::unique_ptr<Recorder>> recorders_;
  std::unique_ptr<int16_t[]> taped_;  // what was said in this tick, before a room's gain
  bool said_something_ = false;
  Player player_;
};

}  // namespace sidetone
