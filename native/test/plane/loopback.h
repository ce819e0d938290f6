// The network of one test process. Linux answers on all of 127.0.0.0/8, so each process takes an address of its own,
// made of its process id: no packet of another program, nor of another run of these tests at the same time, ever
// reaches it, and its ports are always free.
#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "plane/io/address.h"
#include "plane/io/port.h"

namespace sidetone::test {

/** The loopback address of this process as text, such as 127.64.12.34. Process ids have at most 22 bits. */
inline const char* own_host() {
  static char text[16] = {};
  if (text[0] == 0) {
    const unsigned id = static_cast<unsigned>(::getpid());
    std::snprintf(text, sizeof text, "127.%u.%u.%u", 64 | (id >> 16 & 63), id >> 8 & 255, id & 255);
  }
  return text;
}

/** A port of this process's own address. */
inline Address own(uint16_t port) {
  Address address;
  (void)address.parse(own_host(), port);
  return address;
}

/** The discard port, where reports go that nobody looks at. */
inline Address nowhere() { return own(9); }

/** A UDP socket on the process's own address, its port of the system's choice. */
class UdpSocket {
 public:
  UdpSocket() {
    fd_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const Address any = own(0);
    (void)::bind(fd_, &any.any, any.length);
    here_.length = sizeof here_.v6;
    (void)::getsockname(fd_, &here_.any, &here_.length);
  }
  ~UdpSocket() { ::close(fd_); }
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  /** The address that the socket is bound to. */
  const Address& here() const { return here_; }
  int fd() const { return fd_; }
  void send(const Address& to, const std::vector<uint8_t>& bytes) const {
    (void)send_datagram(fd_, &to, bytes.data(), bytes.size());
  }
  /** The datagrams that have come since the last call, each whole. */
  std::vector<std::vector<uint8_t>> receive() const {
    std::vector<std::vector<uint8_t>> all;
    uint8_t bytes[2000];
    ssize_t count;
    while ((count = ::recv(fd_, bytes, sizeof bytes, 0)) > 0) all.emplace_back(bytes, bytes + count);
    return all;
  }

 private:
  int fd_ = -1;
  Address here_;
};

/** The first even port that a plane's legs are tried on; its RTCP port is the next. */
constexpr uint16_t first_port = 20'000;
/** One past the last of them. */
constexpr uint16_t last_port = 30'000;

}  // namespace sidetone::test
