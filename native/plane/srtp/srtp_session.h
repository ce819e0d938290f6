// SRTP and SRTCP (RFC 3711, RFC 7714): one direction of a stream under one master key. How the key came to both sides
// is no affair of this class: SDES (RFC 4568) and DTLS-SRTP (RFC 5764) give it the same suite, key and salt.
//
// The work is libsrtp's. Where the addon was built without it, `srtp_supports` knows no suite and no session is made.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plane/srtp/srtp_sources.h"

namespace sidetone {

/** The suites, by the numbers that script uses (SRTP_SUITE_NUMBER in src/media/worker/worker-command.ts). */
enum class SrtpSuite : uint8_t {
  aes_cm_128_hmac_sha1_80 = 1,
  aes_cm_128_hmac_sha1_32 = 2,
  aead_aes_128_gcm = 3,
  aead_aes_256_gcm = 4,
};

constexpr uint8_t srtp_suite_max = 4;
/** Bytes of the longest master key with its salt: AEAD_AES_256_GCM, 32 and 12. */
constexpr size_t srtp_key_max_bytes = 44;
/** Bytes that protection adds to a packet, at most: SRTCP's index and the longest tag. */
constexpr size_t srtp_overhead_bytes = 4 + 16;

/** The bytes of a suite's master key and, after it, its salt. */
size_t srtp_key_bytes(SrtpSuite suite);
/** Whether this build can do the suite. */
bool srtp_supports(SrtpSuite suite);

class SrtpSession {
 public:
  enum class Direction : uint8_t { send, receive };
  enum class Verdict : uint8_t {
    ok,
    forged,    // its authentication failed, or it is too short to have one
    replayed,  // it came before, is older than the replay window, or may have come before
  };

  /** Makes a session; `key` has `srtp_key_bytes(suite)` bytes. nullptr when this build cannot do the suite. */
  static std::unique_ptr<SrtpSession> create(SrtpSuite suite, const uint8_t* key, Direction direction);
  ~SrtpSession();
  SrtpSession(const SrtpSession&) = delete;
  SrtpSession& operator=(const SrtpSession&) = delete;

  // Each works in place and changes `count`, the bytes of the packet. `bytes` is aligned to four; what is protected
  // needs `srtp_overhead_bytes` of room behind it. A session belongs to one thread at a time.
  /** Encrypts an RTP packet. False when it cannot be sent: one of that number was protected before. */
  bool protect(uint8_t* bytes, size_t& count);
  /** Encrypts a compound RTCP packet. False when it cannot be sent. */
  bool protect_rtcp(uint8_t* bytes, size_t& count);
  /** Authenticates and decrypts an RTP packet. */
  Verdict unprotect(uint8_t* bytes, size_t& count);
  /** Authenticates and decrypts an SRTCP packet. A source that has no context any more is heard again, its reports are
   * not: which of them came before is known no longer. */
  Verdict unprotect_rtcp(uint8_t* bytes, size_t& count);
  /**
   * This receiving session takes the place of another. Its far end may begin with a roll-over counter of zero, as RFC
   * 4568 has it, or keep the one that it has, as RFC 3711 §3.3.1 asks.
   */
  void follow(const SrtpSession& before);
  /** Whether it was made with this suite and key. */
  bool has(SrtpSuite suite, const uint8_t* key) const;

  /** Packets that may overtake others by so many numbers; what is older counts as replayed (RFC 3711 §3.3.2). */
  static constexpr size_t window = 128;
  /** The sources (SSRC) of a receiving session, which each need a context of their own, at a time. Beyond so many the
   * one that was unheard longest gives its own up. */
  static constexpr size_t sources_max = SrtpSources::current_max;

 private:
  struct Library;
  explicit SrtpSession(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
};

}  // namespace sidetone
