// Options of a socket that the runtime has opened, and has no word for.
#include <linux/sock_diag.h>
#include <sys/socket.h>

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

constexpr Export exported[] = {{"receiveBuffer", receive_buffer}, {"datagramsDropped", datagrams_dropped}};

}  // namespace

Exports socket_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
