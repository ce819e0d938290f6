// A range of IP addresses, written as a literal address or as a CIDR (RFC 4632, RFC 4291 §2.3): `192.0.2.7`,
// `192.0.2.0/24`, `2001:db8::/32`. Ports play no part in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plane/io/address.h"

namespace sidetone {

class AddressRange {
 public:
  /** Reads one range. False, and the range then holds no address, when the text is none. An IPv4-mapped IPv6 range
   * becomes its IPv4 range. */
  bool parse(const std::string& text);
  /** Whether the host of the address lies within the range. Never for an address of the other family; an IPv4-mapped
   * address counts as IPv4. */
  bool contains(const Address& address) const;

  /** Reads ranges that are separated by commas, at most `list_max` of them. What is no range is left out: nothing may
   * be learnt from it. */
  static std::vector<AddressRange> parse_list(const std::string& text);

  /** More than a trunk may have (TRUNK_CIDRS_MAX in src/limits.ts), and the signalling address beside them. */
  static constexpr size_t list_max = 128;

 private:
  int family_ = AF_UNSPEC;
  uint32_t bits_ = 0;
  uint8_t network_[16] = {};
};

}  // namespace sidetone
