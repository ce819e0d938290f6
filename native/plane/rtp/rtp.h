// RTP packets (RFC 3550 §5.1).
//
//  0                   1                   2                   3
//  |V=2|P|X|  CC   |M|     PT      |       sequence number         |
//  |                           timestamp                           |
//  |           synchronization source (SSRC) identifier            |
//  |            contributing source (CSRC) identifiers ...         |
//
// Header extensions (§5.3.1) are skipped, not read.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

constexpr size_t rtp_header_bytes = 12;

struct RtpPacket {
  bool marker = false;
  uint8_t payload_type = 0;
  uint16_t sequence = 0;
  uint32_t timestamp = 0;
  uint32_t ssrc = 0;
  const uint8_t* payload = nullptr;
  size_t payload_bytes = 0;
};

/** Reads a packet in place. False for anything that RFC 3550 §A.1 would not take: wrong version, padding or extension
 * beyond the end. */
bool rtp_parse(const uint8_t* bytes, size_t count, RtpPacket& packet);

/** Writes the twelve octets of a header without CSRCs or extension. */
void rtp_write_header(uint8_t* out, bool marker, uint8_t payload_type, uint16_t sequence, uint32_t timestamp,
                      uint32_t ssrc);

/** Whether a datagram on a shared port is RTCP (RFC 5761 §4: packet types 192 to 223). */
inline bool rtp_is_rtcp(const uint8_t* bytes, size_t count) { return count >= 2 && bytes[1] >= 192 && bytes[1] <= 223; }

}  // namespace sidetone
