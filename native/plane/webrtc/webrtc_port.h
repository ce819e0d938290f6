// One UDP socket for all WebRTC legs of a process, and the thread that answers STUN and shakes hands on it.
//
//   datagram ─ first byte (RFC 7983) ─┬─ 0 to 3: STUN ───┬─► control queue ─► this thread
//                                     ├─ 20 to 63: DTLS ─┘      by ufrag, by address
//                                     └─ 128 to 191: (S)RTP ──► the link of its address ─► the leg's next tick
//
// Whoever comes by empties the socket: a plane at each of its ticks (`pump`), else this thread, which does so of its
// own accord while many legs or strangers send. Only media is handed over there and then, so a tick never pays for a
// handshake. What no link expects is counted and dropped; nothing is ever answered that was not authenticated by a
// password of ours.
#pragma once
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "plane/directory.h"
#include "plane/io/port.h"
#include "plane/webrtc/webrtc_link.h"

namespace sidetone {

/** What the port has counted since it was opened. */
struct WebrtcCounters {
  uint32_t checks = 0;             // STUN requests that were answered
  uint32_t unknown_checks = 0;     // dropped: no leg has such a name, or they are malformed
  uint32_t forged_checks = 0;      // dropped: not under the leg's password, or from another leg's address
  uint32_t strange_packets = 0;    // dropped: media or DTLS from where no check came, or of no known kind
  uint32_t overflown_packets = 0;  // dropped: more waited than is held
  uint32_t handshakes = 0;         // complete
  uint32_t failed_handshakes = 0;  // broken off, or the certificate was another than the one in SDP
  uint32_t lost_links = 0;         // consent ran out
};

class WebrtcPort {
 public:
  /**
   * Binds a socket; a port of 0 is the system's choice. A far end that is unheard for `consent_us` is lost. On failure
   * the result is nullptr and `error` an errno.
   */
  static std::shared_ptr<WebrtcPort> open(const Address& address, int& error,
                                          int64_t consent_us = WebrtcLink::consent_us);
  ~WebrtcPort();
  WebrtcPort(const WebrtcPort&) = delete;
  WebrtcPort& operator=(const WebrtcPort&) = delete;

  /** Its number in the process (directory.h). */
  uint32_t number() const { return number_; }
  int fd() const { return fd_; }
  uint16_t bound_port() const { return bound_port_; }
  /** The fingerprint of the certificate, as SDP writes it. */
  const std::string& fingerprint() const { return identity_->fingerprint(); }
  /** Takes it out of the directory. Links that are open go on until they are closed. */
  void retire() { Directory<WebrtcPort>::of_process().remove(number_); }

  // What follows may be called by any thread.
  /** Opens a link. nullptr when `links_max` are open. */
  std::shared_ptr<WebrtcLink> open_link(IceCredentials own, const Fingerprint& expected);
  /** Says goodbye to the far end and forgets the link. */
  void close_link(std::shared_ptr<WebrtcLink> link);
  /** Gives the link other credentials, by which the far end may move (ICE restart). */
  void restart_link(std::shared_ptr<WebrtcLink> link, IceCredentials own);
  /** Empties the socket, unless another thread is at it. */
  void pump();
  WebrtcCounters counters() const;

  static constexpr size_t links_max = 20'000;
  /** Datagrams of STUN and DTLS that wait for the thread, at most. */
  static constexpr size_t control_max = 512;
  /** The most that one host may have of them, so that a flood leaves room for the others. */
  static constexpr uint8_t control_share = 128;
  /** Rounds of `Batch::size` datagrams in one visit to the socket. */
  static constexpr int rounds_max = 64;

 private:
  struct Order {
    enum class What : uint8_t { open, close, restart } what;
    std::shared_ptr<WebrtcLink> link;
    IceCredentials own;
  };
  struct AddressHash {
    size_t operator()(const Address& address) const;
  };
  /** What each host has, by a part of its hash. */
  using Shares = std::array<uint8_t, 256>;
  using Links = std::unordered_map<std::string, std::shared_ptr<WebrtcLink>>;

  WebrtcPort() = default;
  void run();
  void wait();
  void wake() const;
  bool receive();
  bool sort(const Datagram& datagram);
  void obey();
  void give(Order order);
  void obey(const Order& order);
  void serve(const Datagram& datagram, int64_t now_us);
  void serve_check(const Datagram& datagram, int64_t now_us);
  void serve_handshake(const Datagram& datagram);
  bool claim(const std::shared_ptr<WebrtcLink>& link, const Address& from, int64_t now_us);
  void disclaim(const WebrtcLink& link, const Address& from);
  void look(int64_t now_us);
  void look_at_crowd(int64_t span_us);
  void judge(WebrtcLink& link);
  void forget(WebrtcLink& link);
  DtlsEndpoint::Out sender_to(const Address& to) const;

  /** The number of links whose socket of the usual 208 KiB the planes alone, at each tick, keep from overflowing. */
  static constexpr size_t few_links = 100;
  static constexpr int rest_ms = 3;
  // So many datagrams in one visit are half of what that socket holds, and so many a second a fifth more than few links
  // send: while they come, whoever sends them, the thread empties the socket too.
  static constexpr uint64_t crowded_visit = 128;
  static constexpr uint64_t crowded_a_second = 6'000;
  static constexpr int handshake_look_ms = 50;
  static constexpr int look_ms = 1'000;

  int fd_ = -1;
  int wake_fd_ = -1;
  uint16_t bound_port_ = 0;
  uint32_t number_ = 0;
  int64_t consent_us_ = 0;
  std::shared_ptr<DtlsIdentity> identity_;
  pthread_t thread_ = {};
  bool running_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> open_{0};
  std::atomic<bool> crowded_{false};
  std::atomic<uint64_t> received_{0};  // datagrams in all

  std::mutex receive_mutex_;  // for the socket, and what media is sorted by
  Batch batch_;
  std::unordered_map<Address, std::shared_ptr<WebrtcLink>, AddressHash> by_address_;

  std::mutex control_mutex_;
  LinkPackets control_;
  Shares shares_{};  // of `control_`
  std::vector<Order> orders_;

  // The thread's own.
  Links by_ufrag_;
  std::vector<std::shared_ptr<WebrtcLink>> links_;
  LinkPackets taken_;
  size_t checking_ = 0;  // links that are not connected yet
  bool rests_ = false;
  int64_t looked_us_ = 0;
  uint64_t looked_received_ = 0;  // `received_` then
  bool looked_crowded_ = false;   // and whether it was crowded

  std::atomic<uint32_t> checks_{0}, unknown_{0}, forged_{0}, strange_{0}, overflown_{0}, handshakes_{0}, failed_{0},
      lost_{0};
};

}  // namespace sidetone
