// What a plane does with its rooms, and with participants that come from and go to other planes.
#include "plane/plane.h"

namespace sidetone {

Room* Plane::room(uint32_t id) {
  const auto found = rooms_.find(id);
  return found == rooms_.end() ? nullptr : found->second.get();
}

bool Plane::open_room(uint32_t id) {
  if (parties_.count(id) != 0) return false;
  const auto opened = rooms_.emplace(id, std::make_unique<Room>(id, filters_));
  if (opened.second) phases_.add(*opened.first->second);
  return opened.second;
}

bool Plane::open_music(uint32_t room, uint32_t music) {
  Room* of = this->room(room);
  if (of == nullptr || of->closing() || of->music() != nullptr || parties_.count(music) != 0 ||
      rooms_.count(music) != 0)
    return false;
  if (!music_.emplace(music, room).second) return false;
  of->open_music(music);
  return true;
}

bool Plane::close_room(uint32_t id) {
  Room* room = this->room(id);
  if (room == nullptr) return false;
  if (room->player().active()) stop(id, room->player().playback());
  retire(room->take_recorders());
  if (room->music() != nullptr) music_.erase(room->music_id());
  room->close();
  return true;
}

bool Plane::join(uint32_t id, uint32_t room, bool muted, int32_t from_percent, int32_t to_percent) {
  Participant* party = participant(id);
  Room* joined = this->room(room);
  if (party == nullptr || joined == nullptr || joined->closing()) {
    notices_.push_back({NoticeKind::room_left, id, room});
    return false;
  }
  Seat* seat = party->seat();
  if (seat != nullptr) {
    if (seat->room == joined && !seat->leaving) return true;
    seat->room->drop(*seat, notices_);
  }
  if (joined->idle()) phases_.move(*joined, phases_.roomy(party->phase()));
  change_phase(*party, joined->phase());
  (void)joined->join(*party, muted, from_percent, to_percent);
  return true;
}

/** Moves a participant to another phase. It is still ticked once in every tick, however often it moves: at once, where
 * it would be left out of this one. */
void Plane::change_phase(Participant& party, size_t to) {
  const bool ticked = party.phase() < phase_ || party.sits_out();
  const bool comes = to >= phase_;
  phases_.move(party, to);
  if (!ticked && !comes) party.tick(now_of_system(), notices_);
  party.sit_out(ticked && comes);
}

bool Plane::coach(uint32_t id, uint32_t coached) {
  Participant* party = participant(id);
  if (party == nullptr || party->seat() == nullptr) return false;
  Seat& seat = *party->seat();
  Participant* other = participant(coached);
  Seat* of = other == nullptr || other == party ? nullptr : other->seat();
  const bool together = of != nullptr && of->room == seat.room && !of->leaving;
  seat.room->coach(seat, together ? of : nullptr);
  return true;
}

bool Plane::leave(uint32_t id) {
  Participant* party = participant(id);
  if (party == nullptr || party->seat() == nullptr) return false;
  Room::leave(*party->seat());
  return true;
}

bool Plane::drop(uint32_t id) {
  Participant* party = participant(id);
  if (party == nullptr || party->seat() == nullptr) return false;
  party->seat()->room->drop(*party->seat(), notices_);
  return true;
}

bool Plane::mute(uint32_t id, bool muted) {
  Participant* party = participant(id);
  if (party == nullptr || party->seat() == nullptr) return false;
  party->seat()->room->mute(*party->seat(), muted, notices_);
  return true;
}

bool Plane::volume(uint32_t id, bool from, int32_t percent) {
  Participant* party = participant(id);
  if (party == nullptr || party->seat() == nullptr) return false;
  Room::set_volume(*party->seat(), from, percent);
  return true;
}

bool Plane::detect_voices(uint32_t id, bool on) {
  Room* room = this->room(id);
  if (room != nullptr) room->detect_voices(on, notices_);
  return room != nullptr;
}

bool Plane::detect_tones(uint32_t id, bool on) {
  Participant* party = participant(id);
  if (party != nullptr) party->detect_tones(on);
  return party != nullptr;
}

bool Plane::detect_answerer(uint32_t id, uint32_t timeout_ms) {
  Participant* party = participant(id);
  if (party != nullptr) party->detect_answerer(timeout_ms);
  return party != nullptr;
}

bool Plane::send_keys(uint32_t id, uint32_t number, const std::string& keys, uint32_t duration_ms, uint32_t gap_ms) {
  Participant* party = participant(id);
  Leg* leg = party == nullptr ? nullptr : party->rtp();
  return leg != nullptr && leg->send_keys(number, keys, duration_ms, gap_ms);
}

void Plane::retire(std::vector<std::unique_ptr<Recorder>> recorders) {
  for (auto& recorder : recorders) {
    recorder->stop();
    finishing_.push_back(std::move(recorder));
  }
}

Recorder* Plane::recorder(uint32_t of, uint32_t id) {
  if (Participant* party = participant(of)) return party->recorder(id);
  Room* room = this->room(of);
  return room == nullptr ? nullptr : room->recorder(id);
}

bool Plane::record(uint32_t of, RecorderOptions options) {
  Participant* party = participant(of);
  Room* room = this->room(of);
  if (party == nullptr && room == nullptr) return false;
  if (options.rate_hz == 0) options.rate_hz = party != nullptr ? party->rate_hz() : rate_table_hz[room->top()];
  auto recorder = std::make_unique<Recorder>(options);
  if (party != nullptr) party->record(std::move(recorder));
  else room->record(std::move(recorder));
  return true;
}

bool Plane::mask(uint32_t of, uint32_t recording, bool masked) {
  Recorder* found = recorder(of, recording);
  if (found != nullptr) found->mask(masked);
  return found != nullptr;
}

bool Plane::stop_recording(uint32_t of, uint32_t recording) {
  Recorder* found = recorder(of, recording);
  if (found != nullptr) found->stop();
  return found != nullptr;
}

bool Plane::play_volume(uint32_t id, int32_t percent) {
  Player* player = this->player(id);
  return player != nullptr && player->set_volume(player->playback(), percent);
}

bool Plane::move(uint32_t id, uint32_t plane, const Now& now) {
  const std::shared_ptr<Handover> box = Handover::find(plane);
  if (!box || box == box_ || participant(id) == nullptr) return false;
  std::unique_ptr<Participant> party = remove(id, now);
  if (box->put(party)) return true;
  if (party->rtp() != nullptr) (void)sockets_.watch(*party->rtp());
  add(std::move(party));
  return false;
}

void Plane::take_handed() {
  if (box_->empty()) return;
  for (auto& party : box_->take()) {
    const uint32_t id = party->id();
    if (parties_.count(id) != 0 || rooms_.count(id) != 0)
      continue;  // its number was given away while it was on its way: it ends
    if (party->rtp() != nullptr)
      (void)sockets_.watch(*party->rtp());  // a system out of watches makes it deaf, which its media timeout tells
    add(std::move(party));
    notices_.push_back({NoticeKind::moved, id});
  }
}

}  // namespace sidetone
