// The encryption of one leg: a session for what it sends and one for what it hears, each under its own key, and what a
// change of keys within the call asks for.
//
//   agree(K1) ─────────── agree(K2) ── first packet under K2 ──── 2 s ────►
//   heard under:  K1              K2, else K1                        K2
//
// A leg that has a cipher never sends in clear and hears nothing that is not authenticated, also when a session could
// not be made.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plane/io/port.h"
#include "plane/srtp/srtp_session.h"

namespace sidetone {

/** The keys of both directions, as an offer and its answer agreed on them. */
struct SrtpKeys {
  SrtpSuite suite = SrtpSuite::aes_cm_128_hmac_sha1_80;
  uint8_t send[srtp_key_max_bytes] = {};
  uint8_t receive[srtp_key_max_bytes] = {};
};

class LegCipher {
 public:
  LegCipher() = default;
  ~LegCipher();
  LegCipher(const LegCipher&) = delete;
  LegCipher& operator=(const LegCipher&) = delete;

  /** Uses these keys from now on. A direction whose key is the same goes on as it is. */
  void agree(const SrtpKeys& keys);

  /** A packet or datagram in the buffer of the cipher; `bytes` is nullptr when there is none. */
  struct Sealed {
    const uint8_t* bytes = nullptr;
    size_t count = 0;
  };
  /** Encrypts an RTP packet into a buffer that stays as it is until the next call. */
  Sealed seal(const uint8_t* bytes, size_t count);
  /** Encrypts a compound RTCP packet into a buffer of the caller, of `count + srtp_overhead_bytes`. Returns its
   * length, or 0. */
  size_t seal_rtcp(uint8_t* bytes, size_t count);
  /** Encrypts an RTP packet in a buffer of the caller, of `count + srtp_overhead_bytes`. Returns its length, or 0. */
  size_t seal_in_place(uint8_t* bytes, size_t count);

  /** Authenticates and decrypts an RTP datagram into `clear`. False when it is dropped, which is counted. */
  bool open(const Datagram& datagram, uint8_t* clear, size_t& count, int64_t now_us);
  /** Authenticates and decrypts an SRTCP datagram into `clear`. False when it is dropped, which is counted. */
  bool open_rtcp(const Datagram& datagram, uint8_t* clear, size_t& count, int64_t now_us);

  /** Packets whose authentication failed. */
  uint32_t forged() const { return forged_; }
  /** Packets that came before, or are older than the replay window. */
  uint32_t replayed() const { return replayed_; }

  /** How long packets under the key before are taken, after the first one under the new key. */
  static constexpr int64_t overlap_us = 2'000'000;
  /** Bytes of the longest RTP packet that a leg sends. */
  static constexpr size_t packet_max_bytes = 1200;

 private:
  using Opening = SrtpSession::Verdict (SrtpSession::*)(uint8_t* bytes, size_t& count);

  bool open(Opening opening, const Datagram& datagram, uint8_t* clear, size_t& count, int64_t now_us);

  bool agreed_ = false;
  SrtpKeys keys_;
  std::unique_ptr<SrtpSession> sending_;
  std::unique_ptr<SrtpSession> receiving_;
  // Under the key that the far end used until it changed it. It stays, for a call that was held by music from elsewhere
  // comes back to the stream and the key before.
  std::unique_ptr<SrtpSession> before_;
  bool overlaps_ = false;   // whether packets under the key before are still taken
  int64_t changed_us_ = 0;  // when the first packet under the new key came; 0: none yet
  uint32_t forged_ = 0;
  uint32_t replayed_ = 0;
  alignas(8) uint8_t packet_[packet_max_bytes + srtp_overhead_bytes] = {};
};

}  // namespace sidetone
