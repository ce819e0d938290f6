#include "plane/leg_sockets.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace sidetone {

LegSockets::~LegSockets() {
  close();
  if (epoll_fd_ >= 0) ::close(epoll_fd_);
  if (awake_epoll_fd_ >= 0) ::close(awake_epoll_fd_);
}

int LegSockets::open(bool rings) {
  epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd_ < 0) return errno;
  if (rings) receiver_ = Receiver::create();
  return 0;
}

void LegSockets::close() {
  awake_receiver_.reset();
  receiver_.reset();
}

/** What an event of one of a leg's sockets says: a Leg is aligned, so its lowest bits tell which. */
uint64_t LegSockets::tag(Leg& leg, Source source) {
  static_assert(alignof(Leg) >= 4, "two bits are free");
  return reinterpret_cast<uintptr_t>(&leg) | static_cast<uintptr_t>(source);
}

int LegSockets::watch(Leg& leg) {
  if (leg.port() != nullptr) {
    linked_[leg.port()]++;
    return 0;
  }
  epoll_event event;
  event.events = EPOLLIN;
  event.data.u64 = tag(leg, Source::rtcp);
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, leg.ports().rtcp(), &event) != 0) return errno;
  event.data.u64 = tag(leg, Source::others);
  const int others = leg.ports().others();
  if (others >= 0 && ::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, others, &event) != 0) return errno;
  return watch_rtp(leg, false);
}

void LegSockets::unwatch(Leg& leg, const Now& now, Notices& notices) {
  if (leg.port() != nullptr) {
    if (--linked_[leg.port()] == 0) linked_.erase(leg.port());
    return;
  }
  unwatch_rtp(leg, now, notices);
  for (const int fd : {leg.ports().rtcp(), leg.ports().others()})
    if (fd >= 0) (void)::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  for (const Source source : {Source::rtp, Source::others}) (void)receive(leg, source, batches_max, now, notices);
}

int LegSockets::watch_rtp(Leg& leg, bool hasten) {
  if (hasten) hastened_.insert(&leg);
  if (receiver_) {
    (hasten ? awake_receiver_ : receiver_)->watch(leg);
    return 0;
  }
  epoll_event event;
  event.events = EPOLLIN;
  event.data.u64 = tag(leg, Source::rtp);
  return ::epoll_ctl(hasten ? awake_epoll_fd_ : epoll_fd_, EPOLL_CTL_ADD, leg.rtp_fd(), &event) != 0 ? errno : 0;
}

void LegSockets::unwatch_rtp(Leg& leg, const Now& now, Notices& notices) {
  const bool was_hastened = hastened_.erase(&leg) != 0;
  if (receiver_) (was_hastened ? awake_receiver_ : receiver_)->unwatch(leg, now, notices);
  else (void)::epoll_ctl(was_hastened ? awake_epoll_fd_ : epoll_fd_, EPOLL_CTL_DEL, leg.rtp_fd(), nullptr);
}

/** Moves a leg from the sockets of the tick to those that wake the plane, or back. The latter are made at first need.
 */
void LegSockets::turn(Leg& leg, bool hasten, const Now& now, Notices& notices) {
  if (hasten && receiver_ && !awake_receiver_) awake_receiver_ = Receiver::create_awake();
  if (hasten && !receiver_ && awake_epoll_fd_ < 0) awake_epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (hasten && (receiver_ ? !awake_receiver_ : awake_epoll_fd_ < 0)) return;
  unwatch_rtp(leg, now, notices);
  (void)watch_rtp(leg, hasten);
}

void LegSockets::slow_down(const Now& now, Notices& notices) {
  std::vector<Leg*> ended;
  for (Leg* leg : hastened_) {
    if (!leg->relays()) ended.push_back(leg);
  }
  for (Leg* leg : ended) turn(*leg, false, now, notices);
}

bool LegSockets::drain_hastened(Notices& notices) {
  constexpr int rounds = 4;
  if (!awake_receiver_) {
    const size_t legs = hastened_.size();
    return drain_epoll(awake_epoll_fd_, legs, batches_max, now_of_system(), notices) > Batch::size * legs;
  }
  for (int round = 0; round < rounds; round++) {
    awake_receiver_->drain(now_of_system(), notices);
    if (awake_receiver_->rested()) break;
  }
  return false;
}

void LegSockets::renew() {
  batches_ = batches_max;
  if (receiver_) receiver_->renew();
  if (awake_receiver_) awake_receiver_->renew();
}

void LegSockets::drain(size_t legs, const Now& now, Notices& notices) {
  if (notices.size() >= Receiver::notices_max) return;
  if (receiver_) receiver_->drain(now, notices);
  if (awake_receiver_) awake_receiver_->drain(now, notices);
  for (const auto& entry : linked_) entry.first->pump();
  (void)drain_epoll(epoll_fd_, legs, batches_, now, notices);
  if (awake_epoll_fd_ >= 0) (void)drain_epoll(awake_epoll_fd_, legs, batches_, now, notices);
  batches_ = more_batches_max;
}

void LegSockets::drain_links(const std::vector<Participant*>& parties, const Now& now, Notices& notices) {
  if (linked_.empty() || notices.size() >= Receiver::notices_max) return;
  for (Participant* party : parties) {
    Leg* leg = party->rtp();
    if (leg != nullptr && leg->port() != nullptr) leg->drain_link(packets_, now, notices);
  }
}

/** Returns how many packets there were. */
size_t LegSockets::drain_epoll(int fd, size_t legs, int batches, const Now& now, Notices& notices) {
  size_t packets = 0;
  epoll_event events[events_max];
  const size_t rounds = legs * 3 / events_max + 1;
  for (size_t round = 0; round < rounds && notices.size() < Receiver::notices_max; round++) {
    const int count = ::epoll_wait(fd, events, events_max, 0);
    for (int i = 0; i < count; i++) {
      const uint64_t tag = events[i].data.u64;
      Leg* leg = reinterpret_cast<Leg*>(static_cast<uintptr_t>(tag & ~uint64_t{3}));
      packets += receive(*leg, static_cast<Source>(tag & 3), batches, now, notices);
    }
    if (count < events_max) break;
  }
  return packets;
}

/** Gives a leg what one of its sockets holds, at most so many batches. Returns how many packets there were. */
size_t LegSockets::receive(Leg& leg, Source source, int batches, const Now& now, Notices& notices) {
  size_t packets = 0;
  const int fd = source == Source::rtp    ? leg.rtp_fd()
                 : source == Source::rtcp ? leg.ports().rtcp()
                                          : leg.ports().others();
  if (fd < 0) return 0;
  for (int round = 0; round < batches; round++) {
    const int count = batch_.receive(fd);
    for (int i = 0; i < count; i++) {
      if (source == Source::others) leg.ports().came_to_others(batch_[i].source);
      if (source == Source::rtcp) leg.receive_rtcp(batch_[i], now);
      else leg.receive_rtp(batch_[i], now, notices);
    }
    packets += static_cast<size_t>(count);
    if (count < Batch::size) break;
  }
  return packets;
}

}  // namespace sidetone
