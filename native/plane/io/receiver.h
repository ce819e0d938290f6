// What comes to the RTP sockets of a plane, without a system call a packet: each socket has one request that stands
// (io_uring, multishot recvmsg, Linux 6.1), the system lays what has come into buffers of a common ring, and it does so
// only while the plane asks. Until then packets wait in their sockets. Where the system has none of this, `create`
// gives nothing and the plane reads its sockets with epoll and recvmmsg.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "plane/io/rtp_endpoint.h"
#include "plane/io/uring.h"
#include "plane/notice.h"
#include "plane/now.h"

namespace sidetone {

/** One thread owns a receiver: the first one that calls anything but `create` or the destructor. */
class Receiver {
 public:
  /** Makes a receiver, or nullptr when the system has no such io_uring or does not permit it. */
  static std::unique_ptr<Receiver> create();
  /** Makes a receiver with a descriptor that is readable when something has come. nullptr when the system has none. */
  static std::unique_ptr<Receiver> create_awake();
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /** What comes for `endpoint` is given to it from the next `drain` on. */
  void watch(RtpEndpoint& endpoint);
  /** Gives what has come meanwhile, and lets go of the socket: closed after this, its port is free. */
  void unwatch(RtpEndpoint& endpoint, const Now& now, Notices& notices);
  /** Begins a tick: what a flooded endpoint may take is counted anew. */
  void renew() { turn_++; }
  /** Gives all that has come, to a bound: of a flooded leg `most` packets a tick and what was on its way, the rest
   * stays in its socket. */
  void drain(const Now& now, Notices& notices);

  /** Readable after something has come, until `rested`; -1 of one that was not created so. */
  int arrival_fd() const { return arrival_fd_; }
  /** Makes it unreadable. False when more has come since the last `drain`. */
  bool rested();

  /** Packets that one endpoint is given in a tick, at most. */
  static constexpr uint32_t most = 128;
  /** Notices held while script is away; at this many, arrivals stay in the sockets. */
  static constexpr size_t notices_max = 65'536;

 private:
  struct Slot {
    RtpEndpoint* endpoint = nullptr;
    bool standing = false;  // the system holds its request
    bool stopping = false;  // and was asked to let go of it
    uint32_t taken = 0;     // in the tick of this number
    uint64_t turn = 0;
  };

  Receiver() = default;
  bool map();
  bool ask(uint32_t index);
  void stop(uint32_t index);
  void take(const io_uring_cqe& result, const Now& now, Notices& notices);
  /** Gives what has completed. Returns how many completions there were. */
  uint32_t reap(const Now& now, Notices& notices);
  const RtpEndpoint* addressee(const io_uring_cqe& result) const;
  void ask_all();
  void give_back(uint16_t buffer);
  uint8_t* buffer(uint16_t number) const { return space_ + size_t{number} * buffer_bytes; }

  static constexpr uint32_t entries = 1024;
  static constexpr uint32_t completions = 4096;
  static constexpr uint32_t buffers = 1024;
  static constexpr size_t buffer_bytes = 1600;
  /** A request that ends with an error counts as so many packets, so that none is asked for without end. */
  static constexpr uint32_t error_weight = 8;
  static constexpr int unwatch_rounds_max = 256;
  /** Calls in a row that complete nothing, although the system says that work waits, after which it is not believed. */
  static constexpr uint32_t empty_rounds_max = 16;
  /** How many completions before its own an endpoint is looked at, its memory and then its audio are prefetched. */
  static constexpr uint32_t looked_at_ahead = 12;
  static constexpr uint32_t fetched_ahead = 6;
  static constexpr uint32_t audio_ahead = 2;

  std::unique_ptr<Uring> ring_;
  int arrival_fd_ = -1;
  uint8_t* space_ = nullptr;
  io_uring_buf* provided_ = nullptr;
  uint16_t provided_tail_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> unasked_;  // whose request does not stand, of legs and of none
  std::unordered_map<const RtpEndpoint*, uint32_t> at_;
  uint64_t turn_ = 0;
};

}  // namespace sidetone
