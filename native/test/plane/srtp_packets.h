// Packets and reports under SRTP, as the tests of it make and open them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "plane/audio/codec.h"
#include "plane/rtp/rtcp.h"
#include "plane/rtp/rtp.h"
#include "plane/srtp/srtp_session.h"

namespace sidetone::test::srtp {

inline constexpr SrtpSuite suites[] = {SrtpSuite::aes_cm_128_hmac_sha1_80, SrtpSuite::aes_cm_128_hmac_sha1_32,
                                       SrtpSuite::aead_aes_128_gcm, SrtpSuite::aead_aes_256_gcm};

/** Whether this build has SRTP; without it there is nothing to test. */
inline bool able() { return srtp_supports(suites[0]); }

struct Key {
  uint8_t bytes[srtp_key_max_bytes];
  explicit Key(int seed) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = static_cast<uint8_t>(seed * 31 + static_cast<int>(i) * 7);
  }
};

/** A packet with room for what protection adds. */
struct Packet {
  alignas(8) uint8_t bytes[rtp_header_bytes + frame_units + srtp_overhead_bytes] = {};
  size_t count = rtp_header_bytes + frame_units;

  explicit Packet(uint16_t sequence, uint8_t fill = 0x55) {
    rtp_write_header(bytes, false, 0, sequence, sequence * 160u, 77);
    std::memset(bytes + rtp_header_bytes, fill, frame_units);
  }
  bool operator==(const Packet& other) const {
    return count == other.count && std::memcmp(bytes, other.bytes, count) == 0;
  }
};

inline std::unique_ptr<SrtpSession> sender(SrtpSuite suite, const Key& key) {
  return SrtpSession::create(suite, key.bytes, SrtpSession::Direction::send);
}
inline std::unique_ptr<SrtpSession> receiver(SrtpSuite suite, const Key& key) {
  return SrtpSession::create(suite, key.bytes, SrtpSession::Direction::receive);
}

/** A packet of a source, as the far end encrypts it. */
inline std::vector<uint8_t> sealed(SrtpSession& out, uint32_t ssrc, uint16_t sequence) {
  Packet packet(sequence);
  rtp_write_header(packet.bytes, false, 0, sequence, sequence * 160u, ssrc);
  if (!out.protect(packet.bytes, packet.count)) return {};
  return {packet.bytes, packet.bytes + packet.count};
}

inline SrtpSession::Verdict opened(SrtpSession& in, const std::vector<uint8_t>& datagram) {
  alignas(8) uint8_t bytes[rtp_header_bytes + frame_units + srtp_overhead_bytes];
  std::memcpy(bytes, datagram.data(), datagram.size());
  size_t count = datagram.size();
  return in.unprotect(bytes, count);
}

inline std::vector<uint8_t> sealed_report(SrtpSession& out, uint32_t ssrc) {
  alignas(8) uint8_t report[rtcp_max_bytes + srtp_overhead_bytes];
  size_t count = rtcp_write(report, ssrc, nullptr, nullptr, "far", false);
  if (!out.protect_rtcp(report, count)) return {};
  return {report, report + count};
}

inline SrtpSession::Verdict opened_report(SrtpSession& in, const std::vector<uint8_t>& datagram) {
  alignas(8) uint8_t bytes[rtcp_max_bytes + srtp_overhead_bytes];
  std::memcpy(bytes, datagram.data(), datagram.size());
  size_t count = datagram.size();
  return in.unprotect_rtcp(bytes, count);
}

}  // namespace sidetone::test::srtp
