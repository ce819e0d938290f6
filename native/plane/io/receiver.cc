#include "plane/io/receiver.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "plane/io/port.h"

namespace sidetone {
namespace {

constexpr size_t name_bytes = 32;  // a sockaddr_in6, and the control data after it are aligned
constexpr size_t head_bytes = sizeof(io_uring_recvmsg_out) + name_bytes + Datagram::control_bytes;
constexpr uint64_t nothing = ~uint64_t{0};  // of a request whose own end nobody waits for

/** What lies in a buffer; its bytes stay there. */
Datagram read(uint8_t* buffer) {
  io_uring_recvmsg_out about;
  std::memcpy(&about, buffer, sizeof about);
  uint8_t* name = buffer + sizeof about;
  Datagram datagram;
  datagram.source.length = about.namelen < sizeof datagram.source.v6 ? about.namelen : sizeof datagram.source.v6;
  std::memcpy(&datagram.source.v6, name, datagram.source.length);
  msghdr control = {};
  control.msg_control = name + name_bytes;
  control.msg_controllen = about.controllen < Datagram::control_bytes ? about.controllen : Datagram::control_bytes;
  datagram.arrival_us = arrival_us(control);
  datagram.bytes = buffer + head_bytes;
  datagram.count = (about.flags & MSG_TRUNC) != 0 ? 0 : about.payloadlen;
  return datagram;
}

/** How each buffer is laid out: name, control, then what has come. The system copies it with each request. */
msghdr layout() {
  msghdr header = {};
  header.msg_namelen = name_bytes;
  header.msg_controllen = Datagram::control_bytes;
  return header;
}

}  // namespace

std::unique_ptr<Receiver> Receiver::create() {
  std::unique_ptr<Receiver> receiver(new Receiver());
  return receiver->map() ? std::move(receiver) : nullptr;
}

std::unique_ptr<Receiver> Receiver::create_awake() {
  std::unique_ptr<Receiver> receiver = create();
  if (!receiver) return nullptr;
  receiver->arrival_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const bool told = receiver->arrival_fd_ >= 0 && ::syscall(__NR_io_uring_register, receiver->ring_->fd(),
                                                            IORING_REGISTER_EVENTFD, &receiver->arrival_fd_, 1) == 0;
  return told ? std::move(receiver) : nullptr;
}

bool Receiver::rested() {
  uint64_t count;
  (void)!::read(arrival_fd_, &count, sizeof count);
  return !ring_->work_waits();  // what came before the read has asked for work by now
}

bool Receiver::map() {
  static_assert(head_bytes + Datagram::bytes_max <= buffer_bytes, "a buffer holds the largest datagram");
  // Each packet would wake the thread without DEFER_TASKRUN. The ring is disabled until it is first entered, for it is
  // of that thread then.
  ring_ = Uring::create(
      entries, completions,
      IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED);
  if (!ring_) return false;
  const size_t table = buffers * sizeof(io_uring_buf);
  void* at =
      ::mmap(nullptr, table + buffers * buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return false;
  provided_ = static_cast<io_uring_buf*>(at);
  space_ = static_cast<uint8_t*>(at) + table;
  io_uring_buf_reg reg = {};
  reg.ring_addr = reinterpret_cast<uintptr_t>(provided_);
  reg.ring_entries = buffers;
  if (::syscall(__NR_io_uring_register, ring_->fd(), IORING_REGISTER_PBUF_RING, &reg, 1) < 0) return false;
  for (uint32_t i = 0; i < buffers; i++) give_back(static_cast<uint16_t>(i));
  return true;
}

Receiver::~Receiver() {
  if (ring_ && at_.size() > 0) {
    // All requests are cancelled first, or the system would let go of the sockets some time later.
    if (io_uring_sqe* entry = ring_->entry()) {
      entry->opcode = IORING_OP_ASYNC_CANCEL;
      entry->cancel_flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
      entry->user_data = nothing;
    }
    for (int round = 0; round < unwatch_rounds_max && ring_->enter(IORING_ENTER_GETEVENTS) == 0; round++) {
      const uint32_t count = ring_->completed();
      ring_->forget(count);
      if (count == 0 && !ring_->work_waits()) break;
    }
  }
  ring_.reset();
  if (arrival_fd_ >= 0) ::close(arrival_fd_);
  if (provided_ != nullptr) ::munmap(provided_, buffers * (sizeof(io_uring_buf) + buffer_bytes));
}

void Receiver::give_back(uint16_t number) {
  io_uring_buf& entry = provided_[provided_tail_ & (buffers - 1)];
  entry.addr = reinterpret_cast<uintptr_t>(buffer(number));
  entry.len = head_bytes + Datagram::bytes_max;  // and no more, so that the system tells of what is larger
  entry.bid = number;
  provided_tail_++;
  __atomic_store_n(&provided_[0].resv, provided_tail_,
                   __ATOMIC_RELEASE);  // where the ring's tail lies (io_uring_buf_ring)
}

bool Receiver::ask(uint32_t index) {
  static const msghdr header = layout();
  io_uring_sqe* entry = ring_->entry();
  if (entry == nullptr) return false;
  entry->opcode = IORING_OP_RECVMSG;
  entry->flags = IOSQE_BUFFER_SELECT;
  entry->ioprio = IORING_RECV_MULTISHOT;
  entry->fd = slots_[index].endpoint->rtp_fd();
  entry->addr = reinterpret_cast<uintptr_t>(&header);
  entry->len = 1;
  entry->user_data = index;
  slots_[index].standing = true;
  return true;
}

void Receiver::stop(uint32_t index) {
  Slot& slot = slots_[index];
  io_uring_sqe* entry = slot.standing && !slot.stopping ? ring_->entry() : nullptr;
  if (entry == nullptr) return;
  entry->opcode = IORING_OP_ASYNC_CANCEL;
  entry->flags = IOSQE_CQE_SKIP_SUCCESS;
  entry->addr = index;
  entry->user_data = nothing;
  slot.stopping = true;
}

void Receiver::watch(RtpEndpoint& endpoint) {
  uint32_t index = static_cast<uint32_t>(slots_.size());
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  slots_[index] = Slot();
  slots_[index].endpoint = &endpoint;
  at_.emplace(&endpoint, index);
  unasked_.push_back(index);
}

void Receiver::unwatch(RtpEndpoint& endpoint, const Now& now, Notices& notices) {
  const auto found = at_.find(&endpoint);
  if (found == at_.end()) return;
  const uint32_t index = found->second;
  for (int round = 0; round < unwatch_rounds_max && slots_[index].standing; round++) {
    stop(index);
    if (ring_->enter(IORING_ENTER_GETEVENTS) != 0) break;
    reap(now, notices);
  }
  ring_->withdraw(index);  // what the system has not taken must not be asked of the next socket of that number
  at_.erase(found);
  slots_[index].endpoint = nullptr;  // free with the next `ask_all`, or after its last completion
}

void Receiver::drain(const Now& now, Notices& notices) {
  uint32_t empty_rounds = 0;
  do {
    ask_all();
    const bool asks = ring_->queued() > 0;
    if (!asks && !ring_->work_waits()) return;
    if (ring_->enter(IORING_ENTER_GETEVENTS) != 0) {
      (void)reap(now, notices);  // a system that has no place for completions takes no requests until some are read
      return;
    }
    // The system adds work to its list first and says so then. Where we take the work in between, it goes on saying
    // that work waits until more has come, which may be never.
    empty_rounds = reap(now, notices) > 0 || asks ? 0 : empty_rounds + 1;
  } while (empty_rounds < empty_rounds_max && notices.size() < notices_max);
}

void Receiver::ask_all() {
  size_t kept = 0;
  for (const uint32_t index : unasked_) {
    const Slot& slot = slots_[index];
    if (slot.endpoint == nullptr) free_.push_back(index);
    else if ((slot.turn == turn_ && slot.taken >= most) || !ask(index)) unasked_[kept++] = index;
  }
  unasked_.resize(kept);
}

const RtpEndpoint* Receiver::addressee(const io_uring_cqe& result) const {
  return result.user_data == nothing ? nullptr : slots_[static_cast<uint32_t>(result.user_data)].endpoint;
}

uint32_t Receiver::reap(const Now& now, Notices& notices) {
  const uint32_t count = ring_->completed();
  const auto endpoint = [this, count](uint32_t i) { return i < count ? addressee(ring_->completion(i)) : nullptr; };
  const auto look_at = [&endpoint](uint32_t i) {
    if (const RtpEndpoint* each = endpoint(i)) __builtin_prefetch(each);
  };
  const auto fetch = [&endpoint](uint32_t i) {
    if (const RtpEndpoint* each = endpoint(i)) each->fetch();
  };
  const auto fetch_audio = [&endpoint](uint32_t i) {
    if (const RtpEndpoint* each = endpoint(i)) each->fetch_audio();
  };
  // The system gives some twenty completions at a time, so that the first ones count.
  for (uint32_t i = 0; i < looked_at_ahead; i++) look_at(i);
  for (uint32_t i = 0; i < fetched_ahead; i++) fetch(i);
  for (uint32_t i = 0; i < audio_ahead; i++) fetch_audio(i);
  for (uint32_t i = 0; i < count; i++) {
    look_at(i + looked_at_ahead);
    fetch(i + fetched_ahead);
    fetch_audio(i + audio_ahead);
    take(ring_->completion(i), now, notices);
  }
  ring_->forget(count);
  return count;
}

void Receiver::take(const io_uring_cqe& result, const Now& now, Notices& notices) {
  if (result.user_data == nothing) return;
  const uint32_t index = static_cast<uint32_t>(result.user_data);
  Slot& slot = slots_[index];
  if (slot.turn != turn_) slot.taken = 0;
  slot.turn = turn_;
  if ((result.flags & IORING_CQE_F_MORE) == 0) {
    slot.standing = slot.stopping = false;
    unasked_.push_back(index);
  }
  if ((result.flags & IORING_CQE_F_BUFFER) == 0) {
    slot.taken += error_weight;
    return;
  }
  const uint16_t number = static_cast<uint16_t>(result.flags >> IORING_CQE_BUFFER_SHIFT);
  if (slot.endpoint != nullptr && result.res >= static_cast<int32_t>(head_bytes))
    slot.endpoint->receive_rtp(read(buffer(number)), now, notices);
  give_back(number);
  if (++slot.taken >= most) stop(index);
}

}  // namespace sidetone
