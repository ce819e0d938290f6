#include "plane/io/address_range.h"

#include <algorithm>

namespace sidetone {
namespace {

constexpr uint32_t mapped_bits = 96;  // what comes before the IPv4 address in an IPv4-mapped one (RFC 4291 §2.5.5.2)

/** The octets of the host, four or sixteen. */
const uint8_t* octets(const Address& address) {
  return address.any.sa_family == AF_INET6 ? address.v6.sin6_addr.s6_addr
                                           : reinterpret_cast<const uint8_t*>(&address.v4.sin_addr.s_addr);
}

/** Reads the number of leading bits, 0 to `most`, of one to three digits. */
bool parse_bits(const std::string& digits, uint32_t most, uint32_t& bits) {
  if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos) return false;
  bits = 0;
  for (const char digit : digits) bits = bits * 10 + static_cast<uint32_t>(digit - '0');
  return bits <= most;
}

}  // namespace

bool AddressRange::parse(const std::string& text) {
  *this = AddressRange();
  const size_t slash = text.find('/');
  const std::string host = text.substr(0, slash);
  Address address;
  if (host.find('\0') != std::string::npos || !address.parse(host.c_str(), 0)) return false;
  const uint32_t most = address.any.sa_family == AF_INET6 ? 128 : 32;
  uint32_t bits = most;
  if (slash != std::string::npos && !parse_bits(text.substr(slash + 1), most, bits)) return false;
  if (address.mapped() && bits >= mapped_bits) {
    address = address.plain();
    bits -= mapped_bits;
  }
  family_ = address.any.sa_family;
  bits_ = bits;
  std::copy_n(octets(address), family_ == AF_INET6 ? 16 : 4, network_);
  return true;
}

bool AddressRange::contains(const Address& address) const {
  const Address plain = address.plain();
  if (family_ == AF_UNSPEC || plain.empty() || plain.any.sa_family != family_) return false;
  const uint8_t* host = octets(plain);
  const uint32_t whole = bits_ / 8;
  if (!std::equal(host, host + whole, network_)) return false;
  const uint32_t rest = bits_ % 8;
  return rest == 0 || ((host[whole] ^ network_[whole]) >> (8 - rest)) == 0;
}

std::vector<AddressRange> AddressRange::parse_list(const std::string& text) {
  std::vector<AddressRange> ranges;
  for (size_t at = 0; at < text.size() && ranges.size() < list_max;) {
    const size_t end = std::min(text.find(',', at), text.size());
    AddressRange range;
    if (range.parse(text.substr(at, end - at))) ranges.push_back(range);
    at = end + 1;
  }
  return ranges;
}

}  // namespace sidetone
