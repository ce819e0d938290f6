// Options of a socket that the runtime has opened, and has no word for.
#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "addon/exports.h"

namespace sidetone {
namespace {

// receiveBuffer(fd, bytes) -> the bytes that wait in it now at most: less where the system permits no more
Napi::Value receive_buffer(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = static_cast<int>(arguments.number());
  int bytes = arguments.integer();
  if (!arguments.ok()) return arguments.refuse();
  // This goes beyond net.core.rmem_max, where the process has CAP_NET_ADMIN.
  if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
    (void)::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  socklen_t length = sizeof bytes;
  if (::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length) != 0) bytes = 0;
  return arguments.give(static_cast<uint32_t>(bytes));
}

// datagramsDropped(fd) -> the datagrams that the system has dropped since the socket was opened, as the buffer was full
Napi::Value datagrams_dropped(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = static_cast<int>(arguments.number());
  if (!arguments.ok()) return arguments.refuse();
  uint32_t memory[SK_MEMINFO_VARS] = {};
  socklen_t length = sizeof memory;
  (void)::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length);
  return arguments.give(memory[SK_MEMINFO_DROPS]);
}

// mayFragment(fd): datagrams leave without "don't fragment", and over IPv6 in fragments that every path takes
Napi::Value may_fragment(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = static_cast<int>(arguments.number());
  if (!arguments.ok()) return arguments.refuse();
  const int ipv4 = IP_PMTUDISC_DONT, ipv6 = IPV6_PMTUDISC_DONT;
  const int least = 1280;  // RFC 8200 §5: no router makes fragments of IPv6
  // Each option is refused where the socket does not speak that version of IP.
  (void)::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &ipv4, sizeof ipv4);
  (void)::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &ipv6, sizeof ipv6);
  (void)::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &least, sizeof least);
  return info.Env().Undefined();
}

// userTimeout(fd, ms): a TCP connection ends when what was sent is not acknowledged for so long (RFC 5482)
Napi::Value user_timeout(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const int fd = static_cast<int>(arguments.number());
  const uint32_t ms = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
  return info.Env().Undefined();
}

// addressTowards(host) -> our address in packets to it, by the routes of the system; "" where none leads there
Napi::Value address_towards(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  constexpr uint16_t any_port = 9;  // to connect a datagram socket sends nothing
  const Address far = arguments.address(arguments.host(), any_port);
  if (!arguments.ok()) return arguments.refuse();
  char text[INET6_ADDRSTRLEN] = "";
  const int fd = ::socket(far.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  Address own;
  own.length = sizeof own.v6;
  if (fd >= 0 && ::connect(fd, &far.any, far.length) == 0 && ::getsockname(fd, &own.any, &own.length) == 0) {
    const bool is_v6 = own.any.sa_family == AF_INET6;
    const void* bytes = is_v6 ? static_cast<const void*>(&own.v6.sin6_addr) : &own.v4.sin_addr;
    (void)::inet_ntop(own.any.sa_family, bytes, text, sizeof text);
  }
  if (fd >= 0) ::close(fd);
  return Napi::String::New(info.Env(), text);
}

constexpr Export exported[] = {
    {"receiveBuffer", receive_buffer}, {"datagramsDropped", datagrams_dropped}, {"mayFragment", may_fragment},
    {"userTimeout", user_timeout},     {"addressTowards", address_towards},
};

}  // namespace

Exports socket_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
