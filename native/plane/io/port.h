// A port pair is two UDP sockets: RTP on an even port, RTCP on the next (RFC 3550 §11). Datagrams are taken in batches
// and carry the kernel's own time of arrival, so that jitter is measured right however late they are read.
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

#include "plane/io/address.h"

namespace sidetone {

struct Datagram {
  static constexpr size_t bytes_max = 1500;
  static constexpr size_t control_bytes = CMSG_SPACE(sizeof(timespec));

  Address source;
  int64_t arrival_us = 0;  // on the realtime clock; 0: unknown
  size_t count = 0;        // 0 for an oversized one
  const uint8_t* bytes = nullptr;
};

/** When the system received a datagram (wall clock, microseconds), from the message's control data; 0 when it does not
 * say. */
int64_t arrival_us(msghdr& header);

/** The buffers of one recvmmsg. A plane has one batch. */
class Batch {
 public:
  Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  static constexpr int size = 16;
  /** Receives what is waiting on `fd`, at most `size` datagrams, which stay until the next call. Returns how many. */
  int receive(int fd);
  const Datagram& operator[](int index) const { return datagrams_[index]; }

 private:
  Datagram datagrams_[size];
  uint8_t bytes_[size][Datagram::bytes_max];
  mmsghdr messages_[size];
  iovec vectors_[size];
  alignas(cmsghdr) uint8_t control_[size][Datagram::control_bytes];
};

class PortPair {
 public:
  PortPair() = default;
  ~PortPair() { close(); }
  PortPair(const PortPair&) = delete;
  PortPair& operator=(const PortPair&) = delete;

  /** Binds both. Returns 0 or an errno; after an error nothing is open. */
  int open(const Address& rtp, const Address& rtcp);
  void close();
  int rtp() const { return rtp_; }
  int rtcp() const { return rtcp_; }

 private:
  int rtp_ = -1;
  int rtcp_ = -1;
};

/** Opens a UDP socket on an address, for audio. Returns 0 or an errno. */
int bind_udp(const Address& address, int& fd);

/** Sends one datagram. False when it was not taken (full buffer, unreachable): it is lost, as datagrams are. */
bool send_datagram(int fd, const Address& to, const uint8_t* bytes, size_t count);

}  // namespace sidetone
