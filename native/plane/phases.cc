#include "plane/phases.h"

#include <algorithm>

namespace sidetone {
namespace {

template <typename T>
void take_out(std::vector<T*>& from, const T& one) {
  from.erase(std::find(from.begin(), from.end(), &one));
}

}  // namespace

size_t Phases::roomy(size_t wished) const {
  if (has_room(wished)) return wished;
  size_t best = 0;
  for (size_t phase = 0; phase < count; phase++) {
    if (has_room(phase)) return phase;
    if (phases_[phase].parties.size() < phases_[best].parties.size()) best = phase;
  }
  return best;
}

void Phases::add(Participant& party) {
  party.phase(roomy(0));
  phases_[party.phase()].parties.push_back(&party);
}

void Phases::remove(const Participant& party) { take_out(phases_[party.phase()].parties, party); }

void Phases::move(Participant& party, size_t to) {
  if (party.phase() == to) return;
  remove(party);
  party.phase(to);
  phases_[to].parties.push_back(&party);
}

void Phases::add(Room& room) {
  room.phase(0);
  phases_[0].rooms.push_back(&room);
}

void Phases::remove(const Room& room) { take_out(phases_[room.phase()].rooms, room); }

void Phases::move(Room& room, size_t to) {
  if (room.phase() == to) return;
  remove(room);
  room.phase(to);
  phases_[to].rooms.push_back(&room);
}

}  // namespace sidetone
