// The player of one leg or room takes one frame a tick from its track. When script is late, silence is sent and the
// playback goes on after it. Whatever begins, ends, pauses, runs dry or jumps while sound is heard does so over a ramp
// of 5 ms, so that nobody hears a click. A new track waits behind the old one until it has a frame to give, so that
// nobody hears a gap.
//
//   play, seek → next ─(a frame is there)→ now ─→ frames        pause: now stays where it is
#pragma once
#include <cstddef>
#include <cstdint>

#include "plane/audio/track.h"
#include "plane/notice.h"

namespace sidetone {

class Player {
 public:
  /** Begins a playback at a rate in Hz and a volume in percent, in place of the one before it. */
  void play(uint32_t playback, uint32_t rate_hz, int32_t volume_percent);
  /** Queues samples for the newest track. False when another playback is the newest, or the queue is full. */
  bool feed(uint32_t playback, const int16_t* pcm, size_t count);
  /** Nothing more will be fed: the playback ends when its queue has been sent. */
  void finish(uint32_t playback);
  /** Stops at once, over a ramp. */
  void clear();
  /** Holds the position. False when another playback is the newest. */
  bool pause(uint32_t playback);
  /** Goes on from the position held. False when another playback is the newest. */
  bool resume(uint32_t playback);
  /** What is fed from now on is another place of the same playback. Gives the samples of the newest track heard so far.
   */
  bool seek(uint32_t playback, uint32_t& taken);
  bool set_volume(uint32_t playback, int32_t volume_percent);

  uint32_t playback() const { return newest().playback(); }
  /** The rate in Hz at which its sound needs no conversion. */
  uint32_t rate_hz() const { return now_.active() ? now_.rate_hz() : heard_hz_; }
  bool active() const { return newest().active(); }
  /** Forgets the ramp at the end of what was heard: nobody is there any more who would hear it. */
  void forget_ramp() { tail_count_ = 0; }
  /** Whether `frame` may have something to give: a playback, or the ramp at the end of one. */
  bool audible() const { return active() || tail_count_ > 0; }
  bool paused() const { return paused_; }
  /** Whether `frame` may have something to give now: what plays and is not held back, or the ramp at its end. */
  bool sounding() const { return (active() && !paused_) || tail_count_ > 0; }
  /** Whether its first frame has been given. */
  bool started() const { return active() && started_ == playback(); }
  /** Whether all that was fed has been taken, and nothing more will come. */
  bool ended() const { return newest().ended(); }
  bool hungry(const Now& now) { return newest().hungry(now); }
  uint32_t queued_ms() const { return newest().queued_ms(); }
  /** Samples taken by `feed` since `play` or `seek`. */
  uint32_t fed() const { return newest().fed(); }
  /** Silence that was sent since `play` or `seek`, after the beginning, because nothing was there. */
  uint32_t starved_ms() const { return starved_ms_; }

  /** Tells what the last frame changed; `id` is the leg's or room's. Forgets the playback when it has ended. */
  void progress(uint32_t id, const Now& now, Notices& notices);

  /** Fills one frame at `rate_hz`, padded with silence. False when there is nothing to hear. */
  bool frame(int16_t* out, size_t count, uint32_t rate_hz);

  /** A new track that has nothing to give for this long ends the old one all the same. */
  static constexpr uint32_t wait_frames_max = 50;

 private:
  static constexpr size_t ramp_max = 240;  // 5 ms at 48 kHz

  Track& newest() { return next_.active() ? next_ : now_; }
  const Track& newest() const { return next_.active() ? next_ : now_; }
  bool waits() const { return now_.active() && !paused_ && now_.queued_ms() > 0; }
  bool next_ready(size_t count, uint32_t rate_hz) const;
  void replace(Track track);
  void change();
  void leave();
  void add_tail(int16_t* out, size_t count);
  bool run_dry(int16_t* out, size_t got, size_t count);
  size_t ramp() const;

  size_t tail_count_ = 0;  // beside what is looked at in every tick
  Track now_;
  Track next_;
  uint32_t waited_frames_ = 0;
  uint32_t started_ = 0;
  uint32_t told_ = 0;  // the playback whose start was noticed
  uint32_t starved_ms_ = 0;
  bool paused_ = false;
  bool rise_ = false;
  uint32_t heard_hz_ = 8000;
  int16_t last_ = 0;  // the last sample of the last frame, while the sound may go on after it
  int16_t tail_[ramp_max] = {};
};

}  // namespace sidetone
