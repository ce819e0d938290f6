// STUN messages (RFC 8489 §5, §14) as ICE uses them (RFC 8445 §7): the Binding request of a far end, and the answer.
//
//  |0 0|     type (14)     |         length               |
//  |              magic cookie 0x2112A442                 |
//  |              transaction id (96)                     |
//  |  attribute type      |  length   | value, padded ... |
//
// Reading checks the shape and the FINGERPRINT. MESSAGE-INTEGRITY (HMAC-SHA1 under the short-term password) is checked
// by `stun_authentic`, after the user name has told whose password that is. Nothing is allocated.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plane/io/address.h"

namespace sidetone {

constexpr size_t stun_header_bytes = 20;
constexpr size_t stun_transaction_bytes = 12;
/** Bytes of the longest message that is written. */
constexpr size_t stun_answer_max_bytes = 128;
/** A longer message is none of ICE's. */
constexpr size_t stun_request_max_bytes = 600;
/** Attributes that an answer names as unknown, at most. */
constexpr size_t stun_unknown_max = 16;

/** What a Binding request says. Views lie in the bytes that were read. */
struct StunRequest {
  const uint8_t* transaction = nullptr;
  std::string_view username;
  size_t integrity_at = 0;  // where MESSAGE-INTEGRITY begins; 0: it has none
  bool use_candidate = false;
  bool controlled = false;  // it claims the role that is ours (ICE-CONTROLLED)
  // The first of the attributes that must be understood and are not.
  uint16_t unknown[stun_unknown_max] = {};
  size_t unknown_count = 0;
};

/** Whether a datagram may be STUN at all: its first two bits, the cookie and the length. */
bool stun_shaped(const uint8_t* bytes, size_t count);
/** Reads a Binding request. False for other messages, a broken one, or one whose FINGERPRINT is missing or wrong. */
bool stun_read_request(const uint8_t* bytes, size_t count, StunRequest& request);
/** Whether MESSAGE-INTEGRITY of a request is right under `password`. Compared in constant time. */
bool stun_authentic(const uint8_t* bytes, const StunRequest& request, std::string_view password);

/** Writes the success answer, which says where the request came from. Returns its length. `out` has
 * `stun_answer_max_bytes`. */
size_t stun_write_success(uint8_t* out, const uint8_t* transaction, const Address& from, std::string_view password);
/** Writes the answer to a request that claims our role: 487 (RFC 8445 §7.3.1.1). Returns its length. */
size_t stun_write_role_conflict(uint8_t* out, const StunRequest& request, std::string_view password);
/** Writes the answer to a request with unknown attributes: 420, which names them (RFC 8489 §6.3.1.2). Returns its
 * length. */
size_t stun_write_unknown(uint8_t* out, const StunRequest& request, std::string_view password);

/** The CRC-32 of FINGERPRINT (RFC 8489 §14.7), before the XOR. */
uint32_t stun_crc32(const uint8_t* bytes, size_t count);

}  // namespace sidetone
