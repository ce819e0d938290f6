#include "plane/io/sender.h"

#include <sys/socket.h>

namespace sidetone {

std::unique_ptr<Sender> Sender::create() {
  std::unique_ptr<Uring> ring = Uring::create(entries, entries * 2, 0);
  return ring ? std::unique_ptr<Sender>(new Sender(std::move(ring))) : nullptr;
}

void Sender::add(RtpEndpoint& endpoint, int fd, const Address* to, const uint8_t* bytes, size_t count) {
  if (ring_->queued() == entries) flush();
  io_uring_sqe& entry = *ring_->entry();
  entry.opcode = IORING_OP_SEND;
  entry.flags = IOSQE_CQE_SKIP_SUCCESS;
  entry.fd = fd;
  entry.addr = reinterpret_cast<uintptr_t>(bytes);
  entry.len = static_cast<uint32_t>(count);
  entry.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
  if (to != nullptr) {
    entry.addr2 = reinterpret_cast<uintptr_t>(&to->any);
    entry.addr_len = static_cast<uint16_t>(to->length);
  }
  entry.user_data = reinterpret_cast<uintptr_t>(&endpoint);
}

void Sender::flush() {
  if (ring_->queued() == 0) return;
  flushes_++;
  (void)ring_->enter(0);
  ring_->drop();  // what the system could not take is lost, as datagrams are: its bytes do not stay where they are
  const uint32_t count = ring_->completed();
  for (uint32_t i = 0; i < count; i++) {
    const io_uring_cqe& result = ring_->completion(i);
    if (result.res < 0) reinterpret_cast<RtpEndpoint*>(static_cast<uintptr_t>(result.user_data))->refused(-result.res);
  }
  ring_->forget(count);
}

}  // namespace sidetone
