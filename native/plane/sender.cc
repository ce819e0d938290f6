#include "plane/sender.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "plane/leg.h"

namespace sidetone {
namespace {

uint32_t acquire(const uint32_t* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
void release(uint32_t* at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

}  // namespace

std::unique_ptr<Sender> Sender::create() {
  std::unique_ptr<Sender> sender(new Sender());
  return sender->map() ? std::move(sender) : nullptr;
}

bool Sender::map() {
  io_uring_params params;
  std::memset(&params, 0, sizeof params);
  params.flags = IORING_SETUP_CQSIZE;
  params.cq_entries = entries * 2;
  fd_ = static_cast<int>(::syscall(__NR_io_uring_setup, entries, &params));
  if (fd_ < 0 || (params.features & IORING_FEAT_SINGLE_MMAP) == 0 || (params.features & IORING_FEAT_CQE_SKIP) == 0) return false;
  const size_t submissions = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
  const size_t completions = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
  ring_bytes_ = submissions > completions ? submissions : completions;
  ring_ = ::mmap(nullptr, ring_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, IORING_OFF_SQ_RING);
  if (ring_ == MAP_FAILED) {
    ring_ = nullptr;
    return false;
  }
  sqe_bytes_ = params.sq_entries * sizeof(io_uring_sqe);
  void* sqes = ::mmap(nullptr, sqe_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, IORING_OFF_SQES);
  if (sqes == MAP_FAILED) return false;
  sqes_ = static_cast<io_uring_sqe*>(sqes);
  uint8_t* base = static_cast<uint8_t*>(ring_);
  const auto word = [base](uint32_t offset) { return reinterpret_cast<uint32_t*>(base + offset); };
  sq_tail_ = word(params.sq_off.tail);
  sq_array_ = word(params.sq_off.array);
  sq_mask_ = *word(params.sq_off.ring_mask);
  cq_head_ = word(params.cq_off.head);
  cq_tail_ = word(params.cq_off.tail);
  cq_mask_ = *word(params.cq_off.ring_mask);
  cqes_ = reinterpret_cast<io_uring_cqe*>(base + params.cq_off.cqes);
  return true;
}

Sender::~Sender() {
  if (sqes_ != nullptr) ::munmap(sqes_, sqe_bytes_);
  if (ring_ != nullptr) ::munmap(ring_, ring_bytes_);
  if (fd_ >= 0) ::close(fd_);
}

void Sender::add(Leg& leg, int fd, const Address& to, const uint8_t* bytes, size_t count) {
  if (queued_ == entries) flush();
  const uint32_t tail = *sq_tail_ + queued_;
  const uint32_t index = tail & sq_mask_;
  io_uring_sqe& entry = sqes_[index];
  std::memset(&entry, 0, sizeof entry);
  entry.opcode = IORING_OP_SEND;
  entry.flags = IOSQE_CQE_SKIP_SUCCESS;
  entry.fd = fd;
  entry.addr = reinterpret_cast<uintptr_t>(bytes);
  entry.len = static_cast<uint32_t>(count);
  entry.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
  entry.addr2 = reinterpret_cast<uintptr_t>(&to.any);
  entry.addr_len = static_cast<uint16_t>(to.length);
  entry.user_data = reinterpret_cast<uintptr_t>(&leg);
  sq_array_[index] = index;
  queued_++;
}

void Sender::flush() {
  if (queued_ == 0) return;
  release(sq_tail_, *sq_tail_ + queued_);
  while (queued_ > 0) {
    const long done = ::syscall(__NR_io_uring_enter, fd_, queued_, 0, 0, nullptr, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) break;
    queued_ -= static_cast<uint32_t>(done);
  }
  release(sq_tail_, *sq_tail_ - queued_);  // what the system could not take is lost
  queued_ = 0;
  reap();
}

void Sender::reap() {
  uint32_t head = *cq_head_;
  const uint32_t tail = acquire(cq_tail_);
  for (; head != tail; head++) {
    const io_uring_cqe& result = cqes_[head & cq_mask_];
    if (result.res < 0) reinterpret_cast<Leg*>(static_cast<uintptr_t>(result.user_data))->refused(-result.res);
  }
  release(cq_head_, head);
}

}  // namespace sidetone
