// The socket of all far ends of a bench. The kernel stamps what comes, so the delay of the reader does not count.
#pragma once
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "bench/control_timer.h"

namespace sidetone::bench {

/** What each end sends: 20 ms of G.711. */
constexpr int header_bytes = 12;
constexpr int payload_bytes = 160;
constexpr int packet_bytes = header_bytes + payload_bytes;
constexpr int64_t tick_ns = 20'000'000;

class StampedSocket {
 public:
  StampedSocket() = default;
  ~StampedSocket() {
    if (fd_ >= 0) ::close(fd_);
  }
  StampedSocket(const StampedSocket&) = delete;
  StampedSocket& operator=(const StampedSocket&) = delete;

  /** Binds a loopback port. False, with the reason on stderr, where it is taken. */
  bool open(int port) {
    fd_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    const sockaddr_in here = loopback(port);
    if (fd_ < 0 || ::bind(fd_, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0) {
      std::perror("bind");
      return false;
    }
    const int size = 64 << 20;
    const int on = 1;
    (void)::setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    (void)::setsockopt(fd_, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    return true;
  }
  int fd() const { return fd_; }

  /** Calls `take(bytes, length, port, at_ns)` for all that has come; `at_ns` is of the monotonic clock. */
  template <typename Take>
  void drain(const Take& take) {
    for (;;) {
      for (int i = 0; i < batch; i++) {
        vectors_[i] = {bytes_[i], sizeof bytes_[i]};
        messages_[i] = {};
        messages_[i].msg_hdr.msg_iov = &vectors_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
        messages_[i].msg_hdr.msg_name = &from_[i];
        messages_[i].msg_hdr.msg_namelen = sizeof from_[i];
        messages_[i].msg_hdr.msg_control = controls_[i];
        messages_[i].msg_hdr.msg_controllen = sizeof controls_[i];
      }
      const int count = ::recvmmsg(fd_, messages_, batch, MSG_DONTWAIT, nullptr);
      if (count <= 0) return;
      const int64_t wall_ahead_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
      for (int i = 0; i < count; i++) {
        timespec stamp = {};
        for (cmsghdr* c = CMSG_FIRSTHDR(&messages_[i].msg_hdr); c != nullptr;
             c = CMSG_NXTHDR(&messages_[i].msg_hdr, c)) {
          if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS)
            std::memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
        }
        const int64_t at_ns = static_cast<int64_t>(stamp.tv_sec) * 1'000'000'000 + stamp.tv_nsec - wall_ahead_ns;
        take(bytes_[i], static_cast<size_t>(messages_[i].msg_len), static_cast<int>(ntohs(from_[i].sin_port)), at_ns);
      }
      if (count < batch) return;
    }
  }

 private:
  static constexpr int batch = 128;

  int fd_ = -1;
  uint8_t bytes_[batch][256];
  char controls_[batch][64];
  mmsghdr messages_[batch];
  iovec vectors_[batch];
  sockaddr_in from_[batch];
};

}  // namespace sidetone::bench
