// What coaches say. A coach is a member of a room that hears everyone and is heard by one member only: what it says
// joins no sum, but is laid over what that member hears. It belongs to no recording of the room. A room without a coach
// looks at one empty list.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plane/audio/converter.h"
#include "plane/audio/rate.h"

namespace sidetone {

struct Seat;

class Whispers {
 public:
  explicit Whispers(FilterBank& filters) : filters_(filters) {}

  /** Whether the room has no coach. */
  bool none() const { return whispers_.empty(); }
  /** Makes a member the coach of another one, from now on. nullptr: nobody hears it. */
  void turn(const Seat& coach, Seat* coached);
  /** The member that a coach is heard by, or nullptr. */
  const Seat* coached_by(const Seat& coach) const;
  /** A member is gone: it coaches no longer, and who coached it is heard by nobody from now on. */
  void remove(const Seat& seat);
  /** Takes what a coach says in this tick, its gain applied, at the rate of that index. nullptr: nothing. */
  void say(const Seat& coach, const int16_t* pcm, size_t rate);
  /** Whether a coach is to be heard by this member in this tick. */
  bool any(const Seat& seat) const;
  /** Lays what its coaches say over one frame of what a member hears, at the rate of that index. */
  void hear(const Seat& seat, int16_t* out, size_t rate);
  /** Lays over a frame what coaches that were cut off at this sample leave, over so many samples. */
  static void let_fall(int32_t from, int16_t* out, size_t ramp);

 private:
  struct Whisper {
    const Seat* coach;
    Seat* coached;
    const int16_t* pcm = nullptr;
    int16_t last = 0;                    // the last sample that was heard of it
    size_t from = 0;                     // the index of the coach's rate
    size_t to = 0;                       // the rate that the bridge leads to
    std::unique_ptr<RateBridge> bridge;  // where the two have different rates
  };

  void erase(const Seat& coach);
  static void cut_off(Whisper& whisper);

  FilterBank& filters_;
  std::vector<Whisper> whispers_;
};

}  // namespace sidetone
