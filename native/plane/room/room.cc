#include "plane/room/room.h"

#include <cstring>
#include <utility>

#include "kernel/mix/level.h"
#include "kernel/mix/mix.h"
#include "kernel/mix/mix_g711.h"
#include "plane/leg/leg.h"

namespace sidetone {
namespace {

/** 100 ms of sound are a voice. It is over after 500 ms of silence, or 1 s without any audio (contract §4). */
constexpr VoiceActivity::Rule voice_rule{0.5f, 100, 500, 1000};

}  // namespace

int32_t Seat::from_goal() const { return leaving || muted ? 0 : gain_of(from_percent); }
int32_t Seat::to_goal() const { return leaving || held() ? 0 : gain_of(to_percent); }
bool Seat::held() const { return rtp != nullptr && rtp->holding(); }

Room::Room(uint32_t id, FilterBank& filters) : id_(id), filters_(filters), whispers_(filters) {}

Room::~Room() {
  unbridge();
  for (const auto& seat : seats_) seat->party->sit(nullptr);
}

Room::Group& Room::group(size_t index) {
  if (!groups_[index]) {
    groups_[index] = std::make_unique<Group>();
    groups_[index]->sum.resize(rate_samples(index));
    groups_[index]->total.resize(rate_samples(index));
    groups_[index]->whole.resize(rate_samples(index));
  }
  return *groups_[index];
}

size_t Room::top() const {
  for (size_t index = rates; index-- > 0;) {
    if (groups_[index] && groups_[index]->members > 0) return index;
  }
  return 0;
}

/** A member speaks at another rate from now on: it fades out at the old one and in at the new one. */
void Room::enter(Seat& seat, size_t index) {
  let_fall(*groups_[seat.group], seat.last);
  seat.unheard = true;
  groups_[seat.group]->members--;
  seat.group = index;
  group(index).members++;
}

Seat& Room::join(Participant& party, bool muted, int32_t from_percent, int32_t to_percent) {
  unbridge();
  auto seat = std::make_unique<Seat>();
  seat->room = this;
  seat->party = &party;
  seat->rtp = party.rtp();
  seat->place = seats_.size();
  seat->group = rate_index(party.rate_hz());
  seat->muted = muted;
  seat->unheard = seat->rtp != nullptr;  // a stream is taken from its beginning, without a wait
  seat->from_percent = from_percent;
  seat->to_percent = to_percent;
  seat->voice = VoiceActivity(voice_rule);
  group(seat->group).members++;
  party.sit(seat.get());
  seats_.push_back(std::move(seat));
  return *seats_.back();
}

void Room::coach(Seat& seat, Seat* coached) {
  if (seat.coach && whispers_.coached_by(seat) == coached) return;
  groups_[seat.group]->tail += std::exchange(seat.last, int16_t{0});
  seat.unheard = true;
  seat.coach = true;
  whispers_.turn(seat, coached);
}

void Room::leave(Seat& seat) { seat.leaving = true; }

void Room::remove(Seat& seat, Notices& notices) {
  unbridge();
  const uint32_t leg = seat.party->id();
  if (!whispers_.none()) whispers_.remove(seat);
  if (music_ && music_->listener == &seat) music_->listener = nullptr;
  if (seat.voice.stop()) notices.push_back({NoticeKind::voice, leg, 0});
  seat.party->sit(nullptr);
  groups_[seat.group]->members--;
  const size_t place = seat.place;
  if (place + 1 < seats_.size()) {
    seats_[place] = std::move(seats_.back());
    seats_[place]->place = place;
  }
  seats_.pop_back();
  notices.push_back({NoticeKind::room_left, leg, id_});
}

void Room::drop(Seat& seat, Notices& notices) {
  groups_[seat.group]->tail += seat.last;
  remove(seat, notices);
}

void Room::mute(Seat& seat, bool muted, Notices& notices) {
  seat.muted = muted;
  if (muted && seat.voice.stop()) notices.push_back({NoticeKind::voice, seat.party->id(), 0});
}

void Room::set_volume(Seat& seat, bool from, int32_t percent) {
  (from ? seat.from_percent : seat.to_percent) = percent;
}

void Room::detect_voices(bool on, Notices& notices) {
  voices_ = on;
  for (const auto& seat : seats_) {
    if (!on && seat->voice.stop()) notices.push_back({NoticeKind::voice, seat->party->id(), 0});
  }
}

void Room::close() {
  closing_ = true;
  for (const auto& seat : seats_) leave(*seat);
}

void Room::tick(const Now& now, Notices& notices) {
  begin();
  for (size_t i = 0; i < seats_.size() && i < 8; i++) __builtin_prefetch(seats_[i].get());
  const auto leg = [this](size_t place) { return place < seats_.size() ? seats_[place]->rtp : nullptr; };
  const auto fetch = [&leg](size_t place) {
    if (const Leg* far = leg(place)) far->fetch();
  };
  const auto fetch_audio = [&leg](size_t place) {
    const Leg* near = leg(place);
    if (near == nullptr) return;
    near->fetch_audio();
    near->fetch_said();
  };
  for (size_t i = 0; i < 3; i++) fetch(i);
  fetch_audio(0);
  for (size_t i = 0; i < seats_.size(); i++) {
    if (i + 8 < seats_.size()) __builtin_prefetch(seats_[i + 8].get());
    fetch(i + 3);
    fetch_audio(i + 1);
    if (!seats_[i]->party->sits_out()) seats_[i]->party->take(now, notices);
  }
  mix(now, notices);
  if (music_) hold();
  if (seats_.size() == 2) bridge_two(now);
  for (size_t i = 0; i < seats_.size();) {
    Participant& party = *seats_[i]->party;
    if (party.sits_out()) {
      party.sit_out(false);
      i++;
      continue;
    }
    party.give(now, notices);
    if (i < seats_.size() && seats_[i]->party == &party) i++;  // else it has left, and the last has its place
  }
  if (music_) music_->player.progress(music_->id, now, notices);
}

void Room::open_music(uint32_t id) {
  music_ = std::make_unique<Music>();
  music_->id = id;
}

/** Lets the music be heard, as loud as the room, while a member that we do not hold is alone and nothing is played, and
 * holds it back otherwise. */
void Room::hold() {
  Player& player = music_->player;
  const bool heard = seats_.size() == 1 && !seats_[0]->held() && !closing_ && !player_.active();
  if (!heard) {
    (void)player.pause(player.playback());
    return;
  }
  if (music_->listener != seats_[0].get()) {  // who comes as the last one goes does not hear the middle of it
    (void)player.pause(player.playback());
    player.forget_ramp();
  }
  music_->listener = seats_[0].get();
  (void)player.set_volume(player.playback(), seats_[0]->to_percent);
  (void)player.resume(player.playback());
}

/** Whether `to` is to hear what `from` says and nothing else, as loud as it is. What is still on its way to that, a
 * gain or the end of a sound, is over in the last frame of its own before a packet is passed on. */
bool Room::alone_with(const Seat& from, const Seat& to, const Now& now) const {
  const bool plain = from.from_goal() == gain_unity && to.to_goal() == gain_unity;
  return plain && whispers_.none() && from.rtp != nullptr && to.rtp != nullptr && !player_.audible() &&
         !to.party->player().audible() && from.rtp->could_relay(*to.rtp, now) &&
         !(to.rtp->relay().on() && to.rtp->relay().silent(now.us, from.rtp->patience_us(*to.rtp)));
}

/** Two members who hear nothing but each other are not mixed: what one says goes to the other as it came. Their sound
 * is still taken, for whoever else needs it. */
void Room::bridge_two(const Now& now) {
  for (size_t place = 0; place < 2; place++) {
    Seat& to = *seats_[place];
    const Seat& from = *seats_[1 - place];
    // What was passed on and has just ended is led over to a frame of its own before anything else.
    if (!alone_with(from, to, now) || to.rtp->relay().ending()) {
      to.settled = 0;
      if (to.rtp != nullptr) to.rtp->relay().end();
      if (from.rtp != nullptr) from.rtp->relay_to(nullptr);
      continue;
    }
    const uint32_t settled = from.rtp->passes_at_once() || to.rtp->passes_at_once() ? 1 : settle_ticks;
    if (to.settled >= settled && !to.rtp->relay().on()) {  // its source began anew, or it was negotiated
      to.settled = 0;
      from.rtp->relay_to(nullptr);
    }
    if (++to.settled == settled) {
      to.rtp->relay().arm(now.us);
      from.rtp->relay_to(to.rtp);
      began_relay_ = true;
    }
  }
}

/** Called before a member comes or goes. One alone may hold on to the other's leg, in one direction. */
void Room::unbridge() {
  if (seats_.size() != 2) return;
  for (const auto& seat : seats_) {
    seat->settled = 0;
    if (seat->rtp == nullptr) continue;
    seat->rtp->relay_to(nullptr);
    seat->rtp->relay().end();
  }
}

/** Sums are emptied. */
void Room::begin() {
  for (size_t index = 0; index < rates; index++) {
    if (!groups_[index]) continue;
    Group& group = *groups_[index];
    std::memset(group.sum.data(), 0, group.sum.size() * sizeof(int32_t));
    group.spoken = false;
    group.whole_made = false;
    group.encoded_made[0] = group.encoded_made[1] = false;
    let_fall(group, std::exchange(group.tail, 0));
  }
}

/** Adds what a sound that was cut off at this sample leaves to a sum. */
void Room::let_fall(Group& group, int32_t from) {
  if (from == 0) return;
  const size_t ramp = group.sum.size() / ramp_divisor;
  for (size_t i = 0; i < ramp; i++) group.sum[i] += mix_fall(from, i, ramp);
  group.spoken = true;
}

void Room::voice(Seat& seat, VoiceActivity::Change change, Notices& notices) {
  if (change == VoiceActivity::Change::none) return;
  notices.push_back({NoticeKind::voice, seat.party->id(), change == VoiceActivity::Change::began ? 1u : 0u});
}

void Room::contribute(Seat& seat, int16_t* pcm, size_t count, bool heard, Notices& notices) {
  const size_t index = rate_index(seat.party->rate_hz());
  if (index != seat.group) enter(seat, index);  // its codec was negotiated anew
  if (voices_ && !seat.muted && !seat.leaving && !seat.coach)
    voice(seat, seat.voice.frame(heard ? level_dbov(pcm, count) : -127.0f, heard), notices);
  const int32_t goal = seat.from_goal();
  const int32_t before = seat.unheard ? 0 : seat.from_gain;
  if (heard) seat.unheard = false;
  seat.from_gain = goal;
  seat.pcm = nullptr;
  seat.last = 0;
  Group& own = *groups_[index];
  if (!heard || count != own.sum.size() || (before == 0 && goal == 0) || mix_silent(pcm, count)) {
    if (seat.coach) whispers_.say(seat, nullptr, index);
    return;
  }
  if (before != goal || goal != gain_unity) mix_gain(pcm, count, before, goal, count / ramp_divisor);
  if (seat.coach) {
    whispers_.say(seat, pcm, index);
    return;
  }
  mix_add(own.sum.data(), pcm, count);
  own.spoken = true;
  seat.pcm = pcm;
  seat.last = pcm[count - 1];
}

void Room::mix(const Now& now, Notices& notices) {
  if (!player_.audible()) {
    played_at_ = rates;
  } else {
    // Its rate stays the same until it is silent, whoever comes and goes: bridges carry it to those who are there.
    if (played_at_ == rates) played_at_ = rate_index(player_.rate_hz());
    const size_t index = played_at_;
    Group& own = group(index);
    int16_t pcm[frame_max];
    if (player_.frame(pcm, own.sum.size(), rate_table_hz[index])) {
      mix_add(own.sum.data(), pcm, own.sum.size());
      own.spoken = true;
    }
    player_.progress(id_, now, notices);
  }
  bridge();
  if (!recorders_.empty()) tape(notices);
}

void Room::record(std::unique_ptr<Recorder> recorder) {
  group(recorder->rate()).recorders++;
  recorders_.push_back(std::move(recorder));
}

Recorder* Room::recorder(uint32_t id) {
  for (const auto& recorder : recorders_) {
    if (recorder->id() == id) return recorder.get();
  }
  return nullptr;
}

std::vector<std::unique_ptr<Recorder>> Room::take_recorders() {
  for (const auto& recorder : recorders_) groups_[recorder->rate()]->recorders--;
  return std::exchange(recorders_, {});
}

void Room::pause(uint32_t frames) {
  for (const auto& recorder : recorders_) recorder->gap(frames);
}

void Room::tape(Notices& notices) {
  for (size_t i = 0; i < recorders_.size();) {
    Recorder& recorder = *recorders_[i];
    Group& group = *groups_[recorder.rate()];
    if (group.sounding) make_whole(group);
    const float dbov =
        group.sounding && recorder.listens() ? level_dbov(group.whole.data(), group.whole.size()) : -127.0f;
    recorder.take(group.sounding ? group.whole.data() : nullptr, recorder.rate(), !seats_.empty() || group.sounding,
                  dbov, notices);
    if (!recorder.over(notices)) {
      i++;
      continue;
    }
    group.recorders--;
    recorders_.erase(recorders_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/** Every rate that is heard gets what is said at the others. */
void Room::bridge() {
  for (size_t to = 0; to < rates; to++) {
    if (!groups_[to]) continue;
    Group& target = *groups_[to];
    target.sounding = target.spoken;
    bool copied = false;
    for (size_t from = 0; from < rates; from++) {
      if (from == to || !groups_[from]) continue;
      if (target.members == 0 && target.recorders == 0) {
        bridges_[from][to].reset();  // its memory would be stale
        continue;
      }
      const Group& source = *groups_[from];
      auto& carried = bridges_[from][to];
      if (!source.spoken && (!carried || carried->rung_out())) continue;
      if (!carried)
        carried = std::make_unique<RateBridge>(filters_.get(rate_table_hz[from], rate_table_hz[to]), from, to);
      if (!copied) target.total = target.sum;
      copied = true;
      carried->add(source.sum.data(), !source.spoken, target.total.data());
      target.sounding = true;
    }
    target.heard = copied ? target.total.data() : target.sum.data();
  }
}

bool Room::hear(Seat& seat, int16_t* out) {
  const int32_t before = seat.to_gain;
  const int32_t goal = seat.to_goal();
  seat.to_gain = goal;
  Group& group = *groups_[seat.group];
  const int32_t fall = std::exchange(seat.fall, 0);
  const bool whispered = !whispers_.none() && whispers_.any(seat);
  if ((!group.sounding && !whispered && fall == 0) || (before == 0 && goal == 0)) return false;
  const size_t count = group.sum.size();
  if (!group.sounding) {
    std::memset(out, 0, count * sizeof(int16_t));
  } else if (seat.pcm != nullptr) {
    mix_without(group.heard, seat.pcm, out, count);
  } else {
    make_whole(group);
    std::memcpy(out, group.whole.data(), count * sizeof(int16_t));
  }
  if (whispered) whispers_.hear(seat, out, seat.group);
  if (fall != 0) Whispers::let_fall(fall, out, count / ramp_divisor);
  if (before != goal || goal != gain_unity) mix_gain(out, count, before, goal, count / ramp_divisor);
  return true;
}

bool Room::hears_plain(const Seat& seat) const {
  return seat.to_gain == gain_unity && seat.to_goal() == gain_unity && groups_[seat.group]->sounding &&
         seat.fall == 0 && (whispers_.none() || !whispers_.any(seat));
}

void Room::make_whole(Group& group) {
  if (group.whole_made) return;
  mix_whole(group.heard, group.whole.data(), group.sum.size());
  group.whole_made = true;
}

void Room::encode(const Seat& seat, Codec codec, uint8_t* out) {
  Group& group = *groups_[seat.group];
  if (seat.pcm == nullptr) std::memcpy(out, encoded(group, codec), frame_units);
  else if (codec == Codec::pcma) alaw_without(group.heard, seat.pcm, out, frame_units);
  else mulaw_without(group.heard, seat.pcm, out, frame_units);
}

const uint8_t* Room::encoded(Group& group, Codec codec) {
  const size_t law = codec == Codec::pcma ? 1 : 0;
  if (!group.encoded_made[law]) {
    make_whole(group);
    Encoder encoder;
    encoder.encode(codec, group.whole.data(), group.encoded[law], frame_units);
    group.encoded_made[law] = true;
  }
  return group.encoded[law];
}

void Room::settle(Seat& seat, Notices& notices) {
  if (!seat.told) {
    seat.told = true;
    notices.push_back({NoticeKind::room_joined, seat.party->id(), id_});
  }
  if (seat.leaving) remove(seat, notices);
}

}  // namespace sidetone
