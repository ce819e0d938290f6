// A port pair is RTP on an even UDP port and RTCP on the next (RFC 3550 §11). Datagrams are taken in batches and carry
// the kernel's own time of arrival, so that jitter is measured right however late they are read.
//
// The RTP port has two sockets. One is connected to the far end while that stays the same, so that the system looks up
// no route for each packet (3.0 µs instead of 3.4, bench/RESULTS.md). The other gets what comes from anybody else.
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

  /** Binds both ports. Returns 0 or an errno; after an error nothing is open. */
  int open(const Address& rtp, const Address& rtcp);
  void close();
  /** What RTP is sent by, and what the packets of the far end come to. */
  int rtp() const { return rtp_; }
  /** What RTP from anybody else comes to, or -1 where the system permits one socket only: all comes to `rtp` then. */
  int others() const { return others_; }
  int rtcp() const { return rtcp_; }
  /** Connects the RTP socket to this far end. False where it cannot be: packets need the address with them then. */
  bool face(const Address& far_end) { return far_end == faced_ ? faces_ : turn(far_end); }
  /** Takes RTP from anybody by the same socket, until the far end is another: a packet was refused, and perhaps for our
   * own address, which a connected socket keeps. */
  void let_go();
  /** Notes that something came to the socket of others. A far end that goes on coming there writes to another address
   * of this machine than the one that packets leave from. */
  void came_to_others(const Address& source);

  /** So many packets may lie in the socket of others when the RTP socket is connected to whom they are from. */
  static constexpr uint32_t strays_max = 16;

 private:
  bool turn(const Address& far_end);
  void disconnect();

  int rtp_ = -1;
  int others_ = -1;
  int rtcp_ = -1;
  bool faces_ = false;
  uint32_t strays_ = 0;  // of the far end, which came to the other socket
  Address faced_;        // which was last asked for
};

/** Opens a UDP socket on an address, for audio; `shared`: beside one that shares its port. Returns 0 or an errno. */
int bind_udp(const Address& address, int& fd, bool shared = false);

/** Sends one datagram, to the far end of a connected socket without `to`. False when it was not taken (full buffer,
 * unreachable): it is lost, as datagrams are. */
bool send_datagram(int fd, const Address* to, const uint8_t* bytes, size_t count);

}  // namespace sidetone
