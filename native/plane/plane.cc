#include "plane/plane.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace sidetone {
namespace {

int64_t clock_us(clockid_t clock) {
  timespec time;
  ::clock_gettime(clock, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000 + time.tv_nsec / 1000;
}

}  // namespace

Now now_of_system() { return {clock_us(CLOCK_MONOTONIC), clock_us(CLOCK_REALTIME)}; }

std::unique_ptr<Plane> Plane::create(int64_t media_timeout_us, int& error, bool rings) {
  std::unique_ptr<Plane> plane(new Plane());
  plane->media_timeout_us_ = media_timeout_us;
  plane->timer_fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  plane->wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  error = plane->timer_fd_ < 0 || plane->wake_fd_ < 0 ? errno : plane->sockets_.open(rings);
  plane->deadline_us_ = now_of_system().us + tick_us;
  if (error != 0) plane.reset();
  else plane->box_ = Handover::open(plane->wake_fd_);
  if (error == 0 && rings) plane->sender_ = Sender::create();
  return plane;
}

Plane::~Plane() {
  if (box_) box_->shut();
  sockets_.close();
  rooms_.clear();
  parties_.clear();
  if (timer_fd_ >= 0) ::close(timer_fd_);
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

Participant* Plane::participant(uint32_t id) {
  const auto found = parties_.find(id);
  return found == parties_.end() ? nullptr : found->second.get();
}

Leg* Plane::leg(uint32_t id) {
  Participant* party = participant(id);
  return party == nullptr ? nullptr : party->rtp();
}

void Plane::add(std::unique_ptr<Participant> party) {
  if (party->rtp() != nullptr) party->rtp()->send_through(sender_.get());
  if (party->stream() != nullptr) party->stream()->deliver(&frames_);
  phases_.add(*party);
  party->sit_out(false);
  parties_.emplace(party->id(), std::move(party));
}

/** Takes a participant out. `last` become the counters of a leg, as they are while its room still listens to it. */
std::unique_ptr<Participant> Plane::remove(uint32_t id, const Now& now, Counters* last) {
  const auto found = parties_.find(id);
  if (found == parties_.end()) return nullptr;
  std::unique_ptr<Participant> party = std::move(found->second);
  parties_.erase(found);
  phases_.remove(*party);
  if (party->rtp() != nullptr) sockets_.unwatch(*party->rtp(), now, notices_);
  // What still lay in its sockets may have been passed on, and packets of its own may wait: none may outlive it.
  if (sender_) sender_->flush();
  if (last != nullptr && party->rtp() != nullptr) *last = party->rtp()->counters();
  if (party->seat() != nullptr) party->seat()->room->drop(*party->seat(), notices_);
  return party;
}

/** A leg with random numbers of its own, its SSRC among them where that is 0. On failure the result is nullptr and
 * `error` an errno. */
std::unique_ptr<Leg> Plane::make_leg(uint32_t id, int& error, uint32_t ssrc) const {
  Leg::Identity identity;
  error = parties_.count(id) != 0 || rooms_.count(id) != 0 ? EEXIST : 0;
  if (error == 0 && ::getrandom(&identity, sizeof identity, 0) != static_cast<ssize_t>(sizeof identity)) error = EIO;
  if (error != 0) return nullptr;
  if (ssrc != 0) identity.ssrc = ssrc;
  identity.sequence &= 0x7fff;  // so that the loss of the first packets hides no roll-over (RFC 3711 §3.3.1)
  return std::make_unique<Leg>(id, identity, media_timeout_us_);
}

int Plane::open(uint32_t id, const Address& rtp, const Address& rtcp) {
  int error = 0;
  auto leg = make_leg(id, error);
  if (error == 0) error = leg->ports().open(rtp, rtcp);
  if (error == 0) error = sockets_.watch(*leg);
  if (error == 0) add(std::move(leg));
  return error;
}

int Plane::open_webrtc(uint32_t id, uint32_t ssrc, std::shared_ptr<WebrtcPort> port, IceCredentials own,
                       const Fingerprint& expected) {
  int error = 0;
  auto leg = make_leg(id, error, ssrc);
  if (error != 0) return error;
  std::shared_ptr<WebrtcLink> link = port->open_link(std::move(own), expected);
  if (!link) return EAGAIN;
  leg->link(std::move(port), std::move(link));
  (void)sockets_.watch(*leg);
  add(std::move(leg));
  return 0;
}

bool Plane::open_stream(uint32_t id, std::shared_ptr<StreamInbox> inbox, const StreamFormat& to,
                        const StreamFormat& from) {
  if (!inbox || parties_.count(id) != 0 || rooms_.count(id) != 0) return false;
  add(std::make_unique<StreamLeg>(id, std::move(inbox), to, from));
  return true;
}

size_t Plane::take_frames(uint8_t* out, size_t room) {
  const size_t count = frames_.size();
  if (count == 0 || count > room) return count;
  std::memcpy(out, frames_.data(), count);
  frames_.clear();
  return count;
}

bool Plane::close(uint32_t id, Counters& counters, const Now& now) {
  Participant* party = participant(id);
  if (party == nullptr) return false;
  if (party->player().active()) stop(id, party->player().playback());
  retire(party->take_recorders());
  const std::unique_ptr<Participant> gone = remove(id, now, &counters);  // which takes what still lies in its sockets
  if (gone->rtp() != nullptr) gone->rtp()->bye(now);
  return true;
}

bool Plane::negotiate(uint32_t id, const Negotiated& parameters, const Now& now, const SrtpKeys* keys) {
  Leg* leg = this->leg(id);
  if (leg != nullptr) leg->negotiate(parameters, now, keys);
  return leg != nullptr;
}

bool Plane::pipe(uint32_t id, uint32_t own, uint32_t theirs, bool at_once) {
  Leg* leg = this->leg(id);
  if (leg != nullptr) leg->pipe(own, theirs, at_once);
  return leg != nullptr;
}

Player* Plane::player(uint32_t id) {
  Participant* party = participant(id);
  if (party != nullptr) return &party->player();
  const auto music = music_.find(id);
  Room* room = this->room(music == music_.end() ? id : music->second);
  if (room == nullptr) return nullptr;
  return music == music_.end() ? &room->player() : room->music();
}

bool Plane::play(uint32_t id, uint32_t playback, uint32_t rate_hz, int32_t volume_percent) {
  Player* player = this->player(id);
  if (player == nullptr) return false;
  if (player->active())
    notices_.push_back(
        {NoticeKind::playback_stopped, id, player->playback()});  // it is heard until the new one is there
  player->play(playback, rate_hz, volume_percent);
  return true;
}

bool Plane::feed(uint32_t id, uint32_t playback, const int16_t* pcm, size_t count) {
  Player* player = this->player(id);
  return player != nullptr && player->feed(playback, pcm, count);
}

bool Plane::finish(uint32_t id, uint32_t playback) {
  Player* player = this->player(id);
  if (player == nullptr || player->playback() != playback) return false;
  player->finish(playback);
  return true;
}

bool Plane::stop(uint32_t id, uint32_t playback) {
  Player* player = this->player(id);
  if (player == nullptr || playback == 0 || player->playback() != playback) return false;
  player->clear();
  notices_.push_back({NoticeKind::playback_stopped, id, playback});
  return true;
}

bool Plane::pause(uint32_t id, uint32_t playback, bool paused) {
  Player* player = this->player(id);
  if (player == nullptr) return false;
  return paused ? player->pause(playback) : player->resume(playback);
}

bool Plane::seek(uint32_t id, uint32_t playback) {
  Player* player = this->player(id);
  uint32_t taken = 0;
  if (player == nullptr || !player->seek(playback, taken)) return false;
  notices_.push_back({NoticeKind::playback_moved, id, playback, taken});
  return true;
}

bool Plane::counters(uint32_t id, Counters& counters) {
  Leg* leg = this->leg(id);
  if (leg == nullptr) return false;
  counters = leg->counters();
  return true;
}

/** Sleeps until the next deadline, an order, or what is to be passed on as it comes, which it passes on. False when it
 * was an order. */
bool Plane::wait(int64_t now_us) {
  const bool listens = sockets_.hastened() && now_us >= prompt_due_us_;
  pollfd waits[3] = {{timer_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}, {sockets_.arrival_fd(), POLLIN, 0}};
  const int64_t most_us = !sockets_.hastened() || listens ? 1'000'000 : prompt_due_us_ - now_us;
  const timespec most = {most_us / 1'000'000, most_us % 1'000'000 * 1000};
  (void)::ppoll(waits, listens ? 3 : 2, &most, nullptr);  // EINTR ends it early, which is harmless
  if ((waits[1].revents & POLLIN) != 0) {
    uint64_t count;
    (void)!::read(wake_fd_, &count, sizeof count);
    return false;
  }
  if (listens && (waits[2].revents & POLLIN) != 0) pass_on();
  return true;
}

/** Passes on what has come. A flood waits for the tick: what a leg may take is counted by ticks. */
void Plane::pass_on() {
  const bool flooded = notices_.size() >= Receiver::notices_max || sockets_.drain_hastened(notices_);
  if (sender_) sender_->flush();
  prompt_due_us_ = flooded ? deadline_us_ : clock_us(CLOCK_MONOTONIC) + prompt_rest_us;
}

/** Sleeps until `due_us` or an order. */
Plane::Woken Plane::sleep_until(int64_t due_us) {
  Woken woken{clock_us(CLOCK_MONOTONIC), false};
  if (woken.us >= due_us) return woken;
  itimerspec alarm = {};
  alarm.it_value.tv_sec = due_us / 1'000'000;
  alarm.it_value.tv_nsec = due_us % 1'000'000 * 1000;
  (void)::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &alarm, nullptr);
  while (woken.us < due_us && !woken.ordered) {
    woken.ordered = !wait(woken.us);
    woken.us = clock_us(CLOCK_MONOTONIC);
  }
  return woken;
}

/**
 * Rests until an order comes, at most `rest_us`: nobody is there to be ticked. Deadlines stay 20 ms apart, and those
 * that passed meanwhile were nobody's.
 */
TickReport Plane::rest() {
  TickReport report;
  const int64_t due_us = deadline_us_ + rest_us;
  const int64_t time = sleep_until(due_us).us;
  take_handed();
  if (time >= due_us) {
    report.ticks = 1;
    report.lateness_us = time - due_us;
  }
  if (time >= deadline_us_) deadline_us_ += ((time - deadline_us_) / tick_us + 1) * tick_us;
  return report;
}

/** Whether the next phase is run before `run` returns: in the middle of a tick, and after a few that were on time. */
bool Plane::goes_on(const TickReport& report) const {
  return report.ticks == 0 || (report.ticks < quiet_ticks && late_us_ <= on_time_us);
}

TickReport Plane::run() {
  if (parties_.empty() && rooms_.empty() && finishing_.empty() && notices_.empty()) return rest();
  TickReport report;
  Woken woken;
  do {
    woken = sleep_until(deadline_us_);
    take_handed();
    if (woken.us < deadline_us_) break;
    run_due(woken.us, report);
    // An order that came just when a phase was due is not kept waiting for the next ones.
  } while (!woken.ordered && goes_on(report) && notices_.empty() && frames_.empty());
  if (report.ticks > 0) report.lateness_us = std::exchange(late_us_, 0);
  return report;
}

void Plane::run_due(int64_t time_us, TickReport& report) {
  late_us_ = std::max(late_us_, time_us - deadline_us_);
  const int64_t due = (time_us - deadline_us_) / tick_us + 1;
  if (due > catch_up_max) {
    const uint32_t frames = static_cast<uint32_t>(due - 1);
    for (const auto& entry : parties_) entry.second->skip(frames);
    for (const auto& entry : rooms_) entry.second->pause(frames);
    deadline_us_ += static_cast<int64_t>(frames) * tick_us;
    report.skipped += frames;
  }
  const Now started = now_of_system();
  if (phase_ == 0) sockets_.renew();
  sockets_.drain(parties_.size(), started, notices_);
  // Ticks that overrun their time cannot hold the loop for ever: what is due after these is done on the next call.
  for (int64_t ticks = 0; ticks < catch_up_max && deadline_us_ <= started.us;) {
    // Each phase happens at its deadline, also one that is made up for: what is played out then depends on no stall of
    // ours.
    const Now instant{deadline_us_, started.wall_us - (started.us - deadline_us_)};
    sockets_.drain_links(phases_.parties(phase_), started, notices_);
    frame(instant);
    if (next_phase()) ticks++, report.ticks++;
  }
  report.busy_us += clock_us(CLOCK_MONOTONIC) - started.us;
}

/** Goes on to the next phase that has legs or rooms, and to its deadline. The first one has what is done once a tick
 * besides. True when it is that: a tick is over. */
bool Plane::next_phase() {
  do {
    phase_ = (phase_ + 1) % Phases::count;
    deadline_us_ += phase_us;
  } while (phase_ != 0 && phases_.empty(phase_));
  return phase_ == 0;
}

bool Plane::step(const Now& now) {
  take_handed();
  if (phase_ == 0) sockets_.renew();
  sockets_.drain(parties_.size(), now, notices_);
  sockets_.drain_links(phases_.parties(phase_), now, notices_);
  frame(now);
  return next_phase();
}

void Plane::tick(const Now& now) {
  while (!step(now)) continue;
}

/** What is done once a tick. */
void Plane::begin_tick(const Now& now) {
  for (size_t i = 0; i < finishing_.size();) {
    if (finishing_[i]->over(notices_)) finishing_.erase(finishing_.begin() + static_cast<std::ptrdiff_t>(i));
    else i++;
  }
  sockets_.slow_down(now, notices_);
}

/** The frames of the phase that is next. */
void Plane::frame(const Now& now) {
  if (phase_ == 0) begin_tick(now);
  const std::vector<Participant*>& parties = phases_.parties(phase_);
  for (size_t i = 0; i < parties.size(); i++) {
    Participant* party = parties[i];
    if (i + 1 < parties.size() && parties[i + 1]->seat() == nullptr) parties[i + 1]->fetch_said();
    if (party->seat() != nullptr) continue;
    if (!party->sits_out()) party->tick(now, notices_);
    party->sit_out(false);
  }
  bool over = false;
  for (Room* room : phases_.rooms(phase_)) {
    room->tick(now, notices_);
    over = over || room->over();
    if (!room->began_relay()) continue;
    for (const auto& seat : room->seats()) {
      if (seat->rtp != nullptr && seat->rtp->relays() && !sockets_.is_hastened(*seat->rtp))
        sockets_.hasten(*seat->rtp, now, notices_);
    }
  }
  if (sender_) sender_->flush();
  if (!over) return;
  for (const auto& room : std::vector<Room*>(phases_.rooms(phase_))) {
    if (!room->over()) continue;
    phases_.remove(*room);
    rooms_.erase(room->id());
  }
}

size_t Plane::take_notices(Notice* out, size_t room) {
  const size_t count = std::min(room, notices_.size());
  std::copy_n(notices_.begin(), count, out);
  notices_.erase(notices_.begin(), notices_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

}  // namespace sidetone
