#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plane/io/port.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <utility>

namespace sidetone {

namespace {

/** Whether another socket that says so too may be bound to the port of this one. */
void share_port(int fd, bool shared) {
  const int on = shared ? 1 : 0;
  (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

}  // namespace

int bind_udp(const Address& address, int& fd, bool shared) {
  // The socket blocks: with O_NONBLOCK a standing request (Receiver) would end when nothing has come. Each call says
  // MSG_DONTWAIT instead.
  fd = ::socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int on = 1;
  (void)::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  const int expedited = 46 << 2;  // DSCP EF (RFC 3246); best effort where it is not allowed
  // A socket of IPv6 on every address sends to IPv4 as well, whose packets are marked by the first of the two.
  (void)::setsockopt(fd, IPPROTO_IP, IP_TOS, &expedited, sizeof expedited);
  if (address.any.sa_family == AF_INET6)
    (void)::setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &expedited, sizeof expedited);
  if (shared) share_port(fd, true);
  if (::bind(fd, &address.any, address.length) != 0) {
    const int error = errno;
    ::close(fd);
    fd = -1;
    return error;
  }
  return 0;
}

int PortPair::open(const Address& rtp, const Address& rtcp) {
  close();
  int error = bind_udp(rtp, others_);
  if (error == 0) error = bind_udp(rtcp, rtcp_);
  if (error != 0) {
    close();
    return error;
  }
  // The first socket is alone on its port, or could not have been bound; the second shares it, and nobody after them.
  share_port(others_, true);
  if (bind_udp(rtp, rtp_, true) != 0) rtp_ = std::exchange(others_, -1);
  share_port(rtp_, false);
  if (others_ >= 0) share_port(others_, false);
  return 0;
}

void PortPair::close() {
  for (int* fd : {&rtp_, &others_, &rtcp_}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
  faced_ = Address();
  faces_ = false;
}

bool PortPair::turn(const Address& far_end) {
  faced_ = far_end;
  strays_ = 0;
  faces_ = others_ >= 0 && ::connect(rtp_, &far_end.any, far_end.length) == 0;
  if (!faces_) disconnect();
  return faces_;
}

/** The socket is bound to its port as before, and takes from anybody. */
void PortPair::disconnect() {
  sockaddr nobody = {};
  nobody.sa_family = AF_UNSPEC;
  (void)::connect(rtp_, &nobody, sizeof nobody);
}

void PortPair::let_go() {
  if (faces_) disconnect();
  faces_ = false;
}

void PortPair::came_to_others(const Address& source) {
  if (faces_ && source == faced_ && ++strays_ > strays_max) let_go();
}

int64_t arrival_us(msghdr& header) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec stamp;
    std::memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
    return static_cast<int64_t>(stamp.tv_sec) * 1'000'000 + stamp.tv_nsec / 1000;
  }
  return 0;
}

Batch::Batch() {
  for (int i = 0; i < size; i++) {
    datagrams_[i].bytes = bytes_[i];
    vectors_[i] = {bytes_[i], sizeof bytes_[i]};
    messages_[i].msg_hdr = {&datagrams_[i].source.any,
                            sizeof datagrams_[i].source.v6,
                            &vectors_[i],
                            1,
                            control_[i],
                            Datagram::control_bytes,
                            0};
    messages_[i].msg_len = 0;
  }
}

int Batch::receive(int fd) {
  int count;
  // An ICMP error of an earlier send is told once, in place of what waits behind it. A flood of them ends the turn.
  auto refusals_left = size;
  do count = ::recvmmsg(fd, messages_, size, MSG_DONTWAIT, nullptr);
  while (count < 0 && (errno == EINTR || (errno == ECONNREFUSED && refusals_left-- > 0)));
  if (count < 0) return 0;
  for (int i = 0; i < count; i++) {
    msghdr& header = messages_[i].msg_hdr;
    datagrams_[i].source.length = header.msg_namelen;
    datagrams_[i].count = (header.msg_flags & MSG_TRUNC) != 0 ? 0 : messages_[i].msg_len;
    datagrams_[i].arrival_us = arrival_us(header);
    header.msg_namelen = sizeof datagrams_[i].source.v6;  // as it was, for the next time
    header.msg_controllen = Datagram::control_bytes;
    header.msg_flags = 0;
  }
  return count;
}

bool send_datagram(int fd, const Address* to, const uint8_t* bytes, size_t count) {
  const auto send = [=] {
    return to == nullptr ? ::send(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL)
                         : ::sendto(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, &to->any, to->length);
  };
  ssize_t sent;
  do sent = send();
  while (sent < 0 && errno == EINTR);
  if (sent >= 0) return true;
  // An ICMP error of an earlier datagram is reported once on the next call; that datagram, not this one, was refused.
  if (errno == ECONNREFUSED) sent = send();
  return sent >= 0;
}

}  // namespace sidetone
