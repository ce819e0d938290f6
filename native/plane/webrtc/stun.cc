#include "plane/webrtc/stun.h"

#include <cstring>

#include "plane/webrtc/library.h"

namespace sidetone {
namespace {

constexpr uint32_t cookie = 0x2112a442;
constexpr uint32_t fingerprint_xor = 0x5354554e;
constexpr uint16_t binding_request = 0x0001, binding_success = 0x0101, binding_error = 0x0111;
constexpr size_t integrity_bytes = 20;

enum Attribute : uint16_t {
  username = 0x0006,
  message_integrity = 0x0008,
  error_code = 0x0009,
  unknown_attributes = 0x000a,
  xor_mapped_address = 0x0020,
  priority = 0x0024,
  use_candidate = 0x0025,
  fingerprint = 0x8028,
  ice_controlled = 0x8029,
};

uint16_t be16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }
uint32_t be32(const uint8_t* at) { return static_cast<uint32_t>(be16(at)) << 16 | be16(at + 2); }
void put16(uint8_t* at, size_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}
void put32(uint8_t* at, uint32_t value) {
  put16(at, value >> 16);
  put16(at + 2, value & 0xffff);
}
constexpr size_t padded(size_t count) { return (count + 3) & ~size_t{3}; }

struct CrcTable {
  uint32_t of[256] = {};
  constexpr CrcTable() {
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0xedb88320 & (0 - (crc & 1)));
      of[i] = crc;
    }
  }
};

/** Writes a message, attribute by attribute. */
class Writer {
 public:
  Writer(uint8_t* out, uint16_t type, const uint8_t* transaction) : out_(out) {
    put16(out, type);
    put32(out + 4, cookie);
    std::memcpy(out + 8, transaction, stun_transaction_bytes);
  }

  uint8_t* attribute(uint16_t type, size_t count) {
    uint8_t* value = out_ + count_ + 4;
    put16(out_ + count_, type);
    put16(out_ + count_ + 2, count);
    std::memset(value, 0, padded(count));
    count_ += 4 + padded(count);
    return value;
  }

  /** Says what is wrong, as a code and in words. */
  void error(uint16_t code, std::string_view reason) {
    uint8_t* value = attribute(error_code, 4 + reason.size());
    value[2] = static_cast<uint8_t>(code / 100);
    value[3] = static_cast<uint8_t>(code % 100);
    std::memcpy(value + 4, reason.data(), reason.size());
  }

  /** Ends the message with MESSAGE-INTEGRITY and FINGERPRINT. */
  size_t seal(std::string_view password) {
    const size_t signed_bytes = count_;
    uint8_t* mac = attribute(message_integrity, integrity_bytes);
    put16(out_ + 2, count_ - stun_header_bytes);
    hmac_sha1(password, out_, signed_bytes, mac);
    const size_t summed = count_;
    uint8_t* sum = attribute(fingerprint, 4);
    put16(out_ + 2, count_ - stun_header_bytes);
    put32(sum, stun_crc32(out_, summed) ^ fingerprint_xor);
    return count_;
  }

 private:
  uint8_t* out_;
  size_t count_ = stun_header_bytes;
};

}  // namespace

uint32_t stun_crc32(const uint8_t* bytes, size_t count) {
  static constexpr CrcTable table;
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < count; i++) crc = (crc >> 8) ^ table.of[(crc ^ bytes[i]) & 0xff];
  return ~crc;
}

bool stun_shaped(const uint8_t* bytes, size_t count) {
  return count >= stun_header_bytes && count <= stun_request_max_bytes && (bytes[0] & 0xc0) == 0 &&
         be32(bytes + 4) == cookie && be16(bytes + 2) % 4 == 0 && stun_header_bytes + be16(bytes + 2) == count;
}

bool stun_read_request(const uint8_t* bytes, size_t count, StunRequest& request) {
  request = StunRequest();
  if (!stun_shaped(bytes, count) || be16(bytes) != binding_request) return false;
  request.transaction = bytes + 8;
  for (size_t at = stun_header_bytes; at + 4 <= count;) {
    const uint16_t type = be16(bytes + at);
    const size_t length = be16(bytes + at + 2);
    const uint8_t* value = bytes + at + 4;
    if (padded(length) > count - at - 4) return false;
    const bool last = at + 4 + padded(length) == count;
    if (type == fingerprint) return length == 4 && last && be32(value) == (stun_crc32(bytes, at) ^ fingerprint_xor);
    if (request.integrity_at == 0) {  // what follows MESSAGE-INTEGRITY is not believed (RFC 8489 §14.5)
      if (type == message_integrity) {
        if (length != integrity_bytes) return false;
        request.integrity_at = at;
      } else if (type == username) {
        request.username = {reinterpret_cast<const char*>(value), length};
      } else if (type == use_candidate) {
        request.use_candidate = true;
      } else if (type == ice_controlled) {
        request.controlled = true;
      } else if (type < 0x8000 && type != priority) {
        if (request.unknown_count < stun_unknown_max) request.unknown[request.unknown_count++] = type;
      }
    }
    at += 4 + padded(length);
  }
  return false;  // ICE asks for a FINGERPRINT in every message (RFC 8445 §7.1)
}

bool stun_authentic(const uint8_t* bytes, const StunRequest& request, std::string_view password) {
  const size_t at = request.integrity_at;
  if (at == 0 || at > stun_request_max_bytes) return false;
  // The length in the signed header counts up to the end of MESSAGE-INTEGRITY.
  uint8_t text[stun_request_max_bytes];
  std::memcpy(text, bytes, at);
  put16(text + 2, at + 4 + integrity_bytes - stun_header_bytes);
  uint8_t mac[integrity_bytes];
  hmac_sha1(password, text, at, mac);
  uint8_t difference = 0;
  for (size_t i = 0; i < integrity_bytes; i++) difference |= mac[i] ^ bytes[at + 4 + i];
  return difference == 0;
}

size_t stun_write_success(uint8_t* out, const uint8_t* transaction, const Address& from, std::string_view password) {
  Writer writer(out, binding_success, transaction);
  const bool six = from.any.sa_family == AF_INET6;
  uint8_t* value = writer.attribute(xor_mapped_address, six ? 20 : 8);
  uint8_t mask[16];
  put32(mask, cookie);
  std::memcpy(mask + 4, transaction, stun_transaction_bytes);
  value[1] = six ? 2 : 1;
  put16(value + 2, from.port() ^ (cookie >> 16));
  const uint8_t* host = six ? from.v6.sin6_addr.s6_addr : reinterpret_cast<const uint8_t*>(&from.v4.sin_addr);
  for (size_t i = 0; i < (six ? 16u : 4u); i++) value[4 + i] = host[i] ^ mask[i];
  return writer.seal(password);
}

size_t stun_write_role_conflict(uint8_t* out, const StunRequest& request, std::string_view password) {
  Writer writer(out, binding_error, request.transaction);
  writer.error(487, "Role Conflict");
  return writer.seal(password);
}

size_t stun_write_unknown(uint8_t* out, const StunRequest& request, std::string_view password) {
  Writer writer(out, binding_error, request.transaction);
  writer.error(420, "Unknown Attribute");
  uint8_t* value = writer.attribute(unknown_attributes, 2 * request.unknown_count);
  for (size_t i = 0; i < request.unknown_count; i++) put16(value + 2 * i, request.unknown[i]);
  return writer.seal(password);
}

}  // namespace sidetone
