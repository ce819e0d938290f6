// The transport of one WebRTC leg: ICE (lite, RFC 8445 §2.5), consent (RFC 7675) and DTLS on the socket that all such
// legs share. Two threads meet here. The port's thread answers STUN and shakes hands; the plane's thread takes what has
// come, and reads where to send and under which keys. A lock guards each of the two meetings, and neither is held
// during work that takes long.
//
//   checking ── first authenticated check, then the handshake ──► connected ─┬─ close_notify ──► closed
//       │                                                                    └─ 30 s unheard ─► lost
//       ├── handshake broken, wrong certificate ──► failed
//       └── 30 s without a check ──► lost
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plane/io/address.h"
#include "plane/io/port.h"
#include "plane/srtp/leg_cipher.h"
#include "plane/webrtc/dtls.h"

namespace sidetone {

/** The states, by the numbers that script uses (LINK_STATE in src/media/worker/notice.ts). */
enum class LinkState : uint32_t { checking = 0, connected = 1, failed = 2, closed = 3, lost = 4 };

/** The name and password of one side of ICE (RFC 8445 §5.3). */
struct IceCredentials {
  std::string ufrag;
  std::string password;
};

/** Media packets as they lie between the two threads: the bytes of all, one after another. */
struct LinkPackets {
  struct Entry {
    Address source;
    int64_t arrival_us = 0;
    size_t count = 0;
  };
  std::vector<uint8_t> bytes;
  std::vector<Entry> entries;

  void clear() {
    bytes.clear();
    entries.clear();
  }
};

class WebrtcLink {
 public:
  WebrtcLink(IceCredentials own, std::unique_ptr<DtlsEndpoint> dtls, int64_t now_us);
  WebrtcLink(const WebrtcLink&) = delete;
  WebrtcLink& operator=(const WebrtcLink&) = delete;

  /**
   * A far end is gone when nothing authentic came for so long from where media goes: no check (RFC 7675 §5.1), and no
   * packet. Some send no checks while their audio flows, and a lite side has none to ask with.
   */
  static constexpr int64_t consent_us = 30'000'000;
  /** Packets that wait for the plane, at most; beyond them they are dropped and counted. */
  static constexpr size_t packets_max = 128;
  static constexpr size_t packet_bytes_max = 48 * 1024;
  /** Addresses that media may come from: those of checks that were authentic. The one unheard longest is forgotten. */
  static constexpr size_t addresses_max = 8;
  /** When nothing was heard for so long from where media goes, it goes to where the far end is heard. */
  static constexpr int64_t silence_us = 5'000'000;
  /** No other link gets what comes from an address for so long after the far end was heard from there. */
  static constexpr int64_t owned_us = 10'000'000;
  /** How exactly the link knows when media was heard. */
  static constexpr int64_t hear_every_us = 500'000;
  /** Attempts to pair a password with what is not signed by it. Beyond so many in a second none is looked at. */
  static constexpr uint32_t forged_a_second_max = 50;

  // The plane's side.
  LinkState state() const { return state_.load(std::memory_order_acquire); }
  /** The address that media goes to, empty until the far end was heard. `version` changes when it does. */
  Address remote(uint32_t& version) const;
  uint32_t remote_version() const { return remote_version_.load(std::memory_order_acquire); }
  /** The keys. Only when it is or was connected. */
  const SrtpKeys& keys() const { return dtls_->keys(); }
  /** Swaps in what has come since the last call; what `packets` held is forgotten. */
  void take(LinkPackets& packets);
  /** Whether anything has come. */
  bool waiting() const { return waiting_.load(std::memory_order_acquire); }
  /** An authentic packet came from an address. */
  void hear(const Address& from, int64_t now_us);
  uint32_t overflown() const { return overflown_.load(std::memory_order_relaxed); }

  // The port's side; `give` is called under the port's lock for receiving, all others in its thread only.
  void give(const Datagram& datagram);
  /** The credentials that a check names, or nullptr. */
  const IceCredentials* credentials(std::string_view ufrag) const;
  /** An authentic check came. Returns the address that is forgotten for it, or an empty one. */
  Address checked(const Address& from, bool nominated, std::string_view ufrag, int64_t now_us);
  bool may_come_from(const Address& from) const;
  /** Whether the far end lives and was heard from an address a moment ago. */
  bool owns(const Address& from, int64_t now_us) const;
  /** Whether another forged check may be looked at. */
  bool tolerates_forgery(int64_t now_us);
  void forged() { forged_in_window_++; }
  DtlsEndpoint& dtls() { return *dtls_; }
  void set_state(LinkState state) { state_.store(state, std::memory_order_release); }
  /**
   * Adds credentials, by which the far end may move (ICE restart). Of those before, the ones in use stay. Returns the
   * name that is forgotten, or nothing: a far end that has not got the answer goes on under the name that it knows.
   */
  std::string restart(IceCredentials own);
  const std::vector<IceCredentials>& own() const { return own_; }
  /**
   * Turns to the address that was heard last, where the one that media goes to is silent. Returns when the far end was
   * heard last from where media goes now.
   */
  int64_t look(int64_t now_us);
  /** All addresses that media may come from. */
  std::vector<Address> addresses() const;
  /** The address that a DTLS record goes to: that of media, else that of the last check. */
  Address dtls_remote() const;

 private:
  /** An address that an authentic check came from. */
  struct Path {
    Address address;
    int64_t heard_us = 0;  // the last authentic check or packet
  };

  Path* path(const Address& from);
  void send_to(const Address& remote);

  std::atomic<LinkState> state_{LinkState::checking};
  std::atomic<uint32_t> remote_version_{0};
  std::atomic<bool> waiting_{false};
  std::atomic<uint32_t> overflown_{0};
  mutable std::mutex remote_mutex_;
  Address remote_;
  std::vector<Path> paths_;
  std::mutex packets_mutex_;
  LinkPackets packets_;

  std::unique_ptr<DtlsEndpoint> dtls_;
  std::vector<IceCredentials> own_;  // the newest last; before them those that a restart replaces
  size_t used_ = 0;                  // the newest of them that a check came under
  int64_t opened_us_;
  int64_t window_us_ = 0;
  uint32_t forged_in_window_ = 0;

  // The plane's own: the last packet that `hear` was told of.
  Address media_from_;
  int64_t media_us_ = 0;
};

}  // namespace sidetone
