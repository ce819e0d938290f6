// Everyone is ticked once in 20 ms, but not all at one moment: the packets of a thousand legs would leave in a burst of
// milliseconds, and the last of them that much later. So a tick has 16 phases, 1.25 ms apart, each with legs of its
// own. The first are filled first, and the very first takes more, so that a plane with few legs still wakes once in 20
// ms.
//
//   tick     │                      20 ms                      │
//   phase    0   1   2   3   4   5   6   7   8   ...   14  15  0
//   legs    128  64  64  44                                   128
//
// The members of a room are ticked with their room.
#pragma once
#include <array>
#include <cstddef>
#include <vector>

#include "plane/participant.h"
#include "plane/room/room.h"

namespace sidetone {

/** Who is ticked in which phase. It owns nobody. */
class Phases {
 public:
  static constexpr size_t count = 16;
  /** Legs in a phase, while others have room for more. At 8 µs each they take half a millisecond. */
  static constexpr size_t legs_most = 64;
  /** And in the first: another waking of the thread costs each of a hundred legs 5 %. */
  static constexpr size_t first_legs_most = 128;

  /** Gives a participant a phase. */
  void add(Participant& party);
  void remove(const Participant& party);
  void move(Participant& party, size_t to);
  /** Puts a room into the first phase, until its first member comes (`move`). */
  void add(Room& room);
  void remove(const Room& room);
  void move(Room& room, size_t to);

  /** A phase with room: `wished` where that has, else the first one that has, else the one with the fewest legs. */
  size_t roomy(size_t wished) const;
  const std::vector<Participant*>& parties(size_t phase) const { return phases_[phase].parties; }
  const std::vector<Room*>& rooms(size_t phase) const { return phases_[phase].rooms; }
  bool empty(size_t phase) const { return phases_[phase].parties.empty() && phases_[phase].rooms.empty(); }

 private:
  bool has_room(size_t phase) const {
    return phases_[phase].parties.size() < (phase == 0 ? first_legs_most : legs_most);
  }

  struct Phase {
    std::vector<Participant*> parties;
    std::vector<Room*> rooms;
  };

  std::array<Phase, count> phases_;
};

}  // namespace sidetone
