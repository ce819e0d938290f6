#include "plane/rtp/rtcp.h"

#include <cstring>

namespace sidetone {
namespace {

constexpr uint8_t type_sr = 200;
constexpr uint8_t type_rr = 201;
constexpr uint8_t type_sdes = 202;
constexpr uint8_t type_bye = 203;
constexpr size_t block_bytes = 24;

uint32_t be32(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 |
         at[3];
}

uint8_t* put32(uint8_t* at, uint32_t value) {
  at[0] = static_cast<uint8_t>(value >> 24);
  at[1] = static_cast<uint8_t>(value >> 16);
  at[2] = static_cast<uint8_t>(value >> 8);
  at[3] = static_cast<uint8_t>(value);
  return at + 4;
}

/** Writes the common header over a finished packet: count, type, length in words less one. */
void header(uint8_t* start, const uint8_t* end, uint8_t count, uint8_t type) {
  const size_t words = static_cast<size_t>(end - start) / 4 - 1;
  start[0] = static_cast<uint8_t>(0x80 | count);
  start[1] = type;
  start[2] = static_cast<uint8_t>(words >> 8);
  start[3] = static_cast<uint8_t>(words);
}

}  // namespace

size_t rtcp_write(uint8_t* out, uint32_t ssrc, const SenderInfo* sender, const ReportBlock* block, const char* cname,
                  bool bye) {
  uint8_t* at = put32(out + 4, ssrc);
  if (sender != nullptr) {
    at = put32(at, static_cast<uint32_t>(sender->ntp >> 32));
    at = put32(at, static_cast<uint32_t>(sender->ntp));
    at = put32(at, sender->timestamp);
    at = put32(at, sender->packets);
    at = put32(at, sender->octets);
  }
  if (block != nullptr) {
    at = put32(at, block->ssrc);
    const int32_t lost = block->lost > 0x7fffff ? 0x7fffff : block->lost < -0x800000 ? -0x800000 : block->lost;
    at = put32(at, static_cast<uint32_t>(block->fraction_lost) << 24 | (static_cast<uint32_t>(lost) & 0xffffff));
    at = put32(at, block->highest);
    at = put32(at, block->jitter);
    at = put32(at, block->last_sr);
    at = put32(at, block->delay_since_sr);
  }
  header(out, at, block != nullptr ? 1 : 0, sender != nullptr ? type_sr : type_rr);

  uint8_t* sdes = at;
  at = put32(at + 4, ssrc);
  size_t length = std::strlen(cname);
  if (length > 40) length = 40;
  *at++ = 1;  // CNAME
  *at++ = static_cast<uint8_t>(length);
  std::memcpy(at, cname, length);
  at += length;
  do *at++ = 0;  // at least one null octet ends the list, then to the next word
  while ((at - sdes) % 4 != 0);
  header(sdes, at, 1, type_sdes);

  if (bye) {
    uint8_t* start = at;
    at = put32(at + 4, ssrc);
    header(start, at, 1, type_bye);
  }
  return static_cast<size_t>(at - out);
}

bool rtcp_parse(const uint8_t* bytes, size_t count, uint32_t our_ssrc, RtcpHeard& heard) {
  if (count < 8 || count % 4 != 0) return false;
  if (bytes[1] != type_sr && bytes[1] != type_rr) return false;  // a compound begins with a report
  if ((bytes[0] & 0x20) != 0) return false;                      // and only its last part may be padded
  RtcpHeard found;
  size_t at = 0;
  while (at < count) {
    if (count - at < 4 || bytes[at] >> 6 != 2) return false;
    const uint8_t items = bytes[at] & 0x1f;
    const uint8_t type = bytes[at + 1];
    const size_t length = (static_cast<size_t>(bytes[at + 2]) << 8 | bytes[at + 3]) * 4 + 4;
    if (length > count - at) return false;
    const uint8_t* part = bytes + at;
    if (type == type_sr || type == type_rr) {
      const size_t fixed = type == type_sr ? 28 : 8;
      if (length < fixed + items * block_bytes) return false;
      found.sender_ssrc = be32(part + 4);
      if (type == type_sr) {
        found.sender_report = true;
        found.middle_ntp = be32(part + 8) << 16 | be32(part + 12) >> 16;
      }
      for (size_t i = 0; i < items; i++) {
        const uint8_t* block = part + fixed + i * block_bytes;
        if (be32(block) != our_ssrc) continue;
        found.about_us = true;
        found.block.ssrc = our_ssrc;
        found.block.fraction_lost = block[4];
        found.block.lost = static_cast<int32_t>(be32(block + 4) << 8) >> 8;
        found.block.highest = be32(block + 8);
        found.block.jitter = be32(block + 12);
        found.block.last_sr = be32(block + 16);
        found.block.delay_since_sr = be32(block + 20);
      }
    } else if (type == type_bye) {
      if (length < 4 + items * 4u) return false;
      found.bye = true;
    }
    at += length;
  }
  heard = found;
  return true;
}

}  // namespace sidetone
