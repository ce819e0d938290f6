// The sockets of a plane's legs, and how what comes to them is fetched: with the tick, or at once for legs whose
// packets are passed on as they come. Both by io_uring where the system permits it (Receiver), else by epoll and
// recvmmsg.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plane/io/port.h"
#include "plane/io/receiver.h"
#include "plane/leg/leg.h"
#include "plane/notice.h"
#include "plane/now.h"

namespace sidetone {

class LegSockets {
 public:
  LegSockets() = default;
  ~LegSockets();
  LegSockets(const LegSockets&) = delete;
  LegSockets& operator=(const LegSockets&) = delete;

  /** Opens what is needed; `rings` says whether io_uring is used where it may. Returns 0 or an errno. */
  int open(bool rings);

  /** Lets go of all sockets at once. Closed after this, their ports are free. */
  void close();
  /** Gives the leg what comes to its sockets, with each `drain`. Returns 0 or an errno. */
  int watch(Leg& leg);
  /** Gives the leg what has come meanwhile, and lets go of its sockets. */
  void unwatch(Leg& leg, const Now& now, Notices& notices);

  /** What comes for the leg wakes the plane from now on. Where the system refuses, and for a WebRTC leg, it waits for
   * the tick as before. */
  void hasten(Leg& leg, const Now& now, Notices& notices) {
    if (leg.port() == nullptr) turn(leg, true, now, notices);
  }
  /** Legs that no longer pass their packets on wait for the tick again. */
  void slow_down(const Now& now, Notices& notices);
  /** Whether any leg wakes the plane. */
  bool hastened() const { return !hastened_.empty(); }
  bool is_hastened(Leg& leg) const { return hastened_.count(&leg) != 0; }
  /** Readable when something has come for a leg that wakes the plane; -1 when there was never such a leg. */
  int arrival_fd() const { return awake_receiver_ ? awake_receiver_->arrival_fd() : awake_epoll_fd_; }
  /** Fetches what has come for these legs. True when it was more than legs may take before the next tick. */
  bool drain_hastened(Notices& notices);

  /** Begins a tick: what a flooded leg may take is counted anew. */
  void renew();
  /** Fetches all that has come for so many legs, to a bound: a flooded leg waits for the next tick, the others do not
   * wait for it. What comes to WebRTC ports is sorted to their links only. */
  void drain(size_t legs, const Now& now, Notices& notices);
  /** Gives those of these legs that have one what has come by their link. */
  void drain_links(const std::vector<Participant*>& parties, const Now& now, Notices& notices);

 private:
  static constexpr int batches_max = 8;
  static constexpr int more_batches_max = 1;
  static constexpr int events_max = 512;

  /** Which socket of a leg something came to. */
  enum class Source : uintptr_t { rtp, rtcp, others };

  static uint64_t tag(Leg& leg, Source source);
  int watch_rtp(Leg& leg, bool hasten);
  void unwatch_rtp(Leg& leg, const Now& now, Notices& notices);
  void turn(Leg& leg, bool hasten, const Now& now, Notices& notices);
  size_t drain_epoll(int fd, size_t legs, int batches, const Now& now, Notices& notices);
  size_t receive(Leg& leg, Source source, int batches, const Now& now, Notices& notices);

  int epoll_fd_ = -1;
  std::unique_ptr<Receiver> receiver_;
  std::unordered_set<Leg*> hastened_;
  std::unordered_map<WebrtcPort*, size_t> linked_;  // the ports of WebRTC legs, and how many have each
  int batches_ = batches_max;                       // that a leg may take in the next `drain`
  LinkPackets packets_;
  std::unique_ptr<Receiver> awake_receiver_;
  int awake_epoll_fd_ = -1;
  Batch batch_;
};

}  // namespace sidetone
