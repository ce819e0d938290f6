#include "plane/rtp/rtp.h"

namespace sidetone {
namespace {

uint16_t be16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }
uint32_t be32(const uint8_t* at) { return static_cast<uint32_t>(be16(at)) << 16 | be16(at + 2); }

}  // namespace

bool rtp_parse(const uint8_t* bytes, size_t count, RtpPacket& packet) {
  if (count < rtp_header_bytes || bytes[0] >> 6 != 2) return false;
  const bool padding = (bytes[0] & 0x20) != 0;
  const bool extension = (bytes[0] & 0x10) != 0;
  size_t start = rtp_header_bytes + 4u * (bytes[0] & 0x0f);
  if (start > count) return false;
  if (extension) {
    if (start + 4 > count) return false;
    start += 4 + 4u * be16(bytes + start + 2);
    if (start > count) return false;
  }
  size_t end = count;
  if (padding) {
    const size_t pad = bytes[count - 1];
    if (pad == 0 || pad > count - start) return false;
    end -= pad;
  }
  packet.marker = (bytes[1] & 0x80) != 0;
  packet.payload_type = bytes[1] & 0x7f;
  packet.sequence = be16(bytes + 2);
  packet.timestamp = be32(bytes + 4);
  packet.ssrc = be32(bytes + 8);
  packet.payload = bytes + start;
  packet.payload_bytes = end - start;
  return true;
}

void rtp_write_header(uint8_t* out, bool marker, uint8_t payload_type, uint16_t sequence, uint32_t timestamp,
                      uint32_t ssrc) {
  out[0] = 0x80;
  out[1] = static_cast<uint8_t>((marker ? 0x80 : 0) | (payload_type & 0x7f));
  out[2] = static_cast<uint8_t>(sequence >> 8);
  out[3] = static_cast<uint8_t>(sequence);
  for (int i = 0; i < 4; i++) {
    out[4 + i] = static_cast<uint8_t>(timestamp >> (24 - 8 * i));
    out[8 + i] = static_cast<uint8_t>(ssrc >> (24 - 8 * i));
  }
}

}  // namespace sidetone
