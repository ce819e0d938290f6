// A transport address, IPv4 or IPv6.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

namespace sidetone {

struct Address {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t length = 0;

  Address() { std::memset(&v6, 0, sizeof v6); }

  /** Parses a literal address. False, and empty, where it is none. */
  bool parse(const char* host, uint16_t port) {
    std::memset(&v6, 0, sizeof v6);
    length = 0;
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
      length = sizeof v4;
    } else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(port);
      length = sizeof v6;
    }
    return length != 0;
  }

  bool empty() const { return length == 0; }
  /** 0.0.0.0 or ::, which is no destination (and would mean this very host). */
  bool unspecified() const {
    return any.sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr) != 0 : v4.sin_addr.s_addr == INADDR_ANY;
  }
  /** An IPv4 address as an IPv6 socket shows it, such as ::ffff:192.0.2.1 (RFC 4291 §2.5.5.2). */
  bool mapped() const { return any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) != 0; }
  /** The address itself, or the IPv4 address that is mapped into it. */
  Address plain() const {
    if (!mapped()) return *this;
    Address out;
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = v6.sin6_port;
    std::memcpy(&out.v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof out.v4.sin_addr);
    out.length = sizeof out.v4;
    return out;
  }
  uint16_t port() const { return ntohs(any.sa_family == AF_INET6 ? v6.sin6_port : v4.sin_port); }
  /** The same host at another port. */
  Address with_port(uint16_t port) const {
    Address out = *this;
    if (any.sa_family == AF_INET6) out.v6.sin6_port = htons(port);
    else out.v4.sin_port = htons(port);
    return out;
  }

  bool operator==(const Address& other) const {
    if (any.sa_family != other.any.sa_family || length == 0 || other.length == 0) return false;
    if (any.sa_family == AF_INET)
      return v4.sin_port == other.v4.sin_port && v4.sin_addr.s_addr == other.v4.sin_addr.s_addr;
    return v6.sin6_port == other.v6.sin6_port &&
           std::memcmp(&v6.sin6_addr, &other.v6.sin6_addr, sizeof v6.sin6_addr) == 0;
  }
  bool operator!=(const Address& other) const { return !(*this == other); }
  /** Whether both are of one host, whatever their ports. */
  bool same_host(const Address& other) const {
    if (any.sa_family != other.any.sa_family || length == 0 || other.length == 0) return false;
    if (any.sa_family == AF_INET) return v4.sin_addr.s_addr == other.v4.sin_addr.s_addr;
    return std::memcmp(&v6.sin6_addr, &other.v6.sin6_addr, sizeof v6.sin6_addr) == 0;
  }
};

}  // namespace sidetone
