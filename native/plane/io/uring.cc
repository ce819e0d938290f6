#include "plane/io/uring.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace sidetone {
namespace {

void* map(int fd, size_t bytes, off_t what) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

std::unique_ptr<Uring> Uring::create(uint32_t entries, uint32_t completions, uint32_t flags) {
  std::unique_ptr<Uring> ring(new Uring());
  io_uring_params params;
  std::memset(&params, 0, sizeof params);
  params.flags = flags | IORING_SETUP_CQSIZE;
  params.cq_entries = completions;
  ring->fd_ = static_cast<int>(::syscall(__NR_io_uring_setup, entries, &params));
  if (ring->fd_ < 0 || (params.features & IORING_FEAT_SINGLE_MMAP) == 0 ||
      (params.features & IORING_FEAT_CQE_SKIP) == 0)
    return nullptr;
  ring->disabled_ = (flags & IORING_SETUP_R_DISABLED) != 0;
  ring->entries_ = params.sq_entries;
  const size_t submissions = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
  const size_t completed = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
  ring->ring_bytes_ = submissions > completed ? submissions : completed;
  ring->ring_ = map(ring->fd_, ring->ring_bytes_, IORING_OFF_SQ_RING);
  ring->sqe_bytes_ = params.sq_entries * sizeof(io_uring_sqe);
  ring->sqes_ = static_cast<io_uring_sqe*>(map(ring->fd_, ring->sqe_bytes_, IORING_OFF_SQES));
  if (ring->ring_ == nullptr || ring->sqes_ == nullptr) return nullptr;
  uint8_t* base = static_cast<uint8_t*>(ring->ring_);
  const auto word = [base](uint32_t offset) { return reinterpret_cast<uint32_t*>(base + offset); };
  ring->sq_flags_ = word(params.sq_off.flags);
  ring->sq_tail_ = word(params.sq_off.tail);
  ring->sq_array_ = word(params.sq_off.array);
  ring->sq_mask_ = *word(params.sq_off.ring_mask);
  ring->cq_head_ = word(params.cq_off.head);
  ring->cq_tail_ = word(params.cq_off.tail);
  ring->cq_mask_ = *word(params.cq_off.ring_mask);
  ring->cqes_ = reinterpret_cast<const io_uring_cqe*>(base + params.cq_off.cqes);
  return ring;
}

Uring::~Uring() {
  if (sqes_ != nullptr) ::munmap(sqes_, sqe_bytes_);
  if (ring_ != nullptr) ::munmap(ring_, ring_bytes_);
  if (fd_ >= 0) ::close(fd_);
}

io_uring_sqe* Uring::entry() {
  if (queued_ == entries_) return nullptr;
  const uint32_t index = (*sq_tail_ + queued_) & sq_mask_;
  sq_array_[index] = index;
  queued_++;
  std::memset(&sqes_[index], 0, sizeof sqes_[index]);
  return &sqes_[index];
}

int Uring::enter(uint32_t flags) {
  if (disabled_) {
    if (::syscall(__NR_io_uring_register, fd_, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) < 0) return errno;
    disabled_ = false;
  }
  __atomic_store_n(sq_tail_, *sq_tail_ + queued_, __ATOMIC_RELEASE);
  int error = 0;
  do {
    const long done = ::syscall(__NR_io_uring_enter, fd_, queued_, 0, flags, nullptr, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) error = errno;
    else if (done == 0 && queued_ > 0) error = EAGAIN;
    if (error != 0) break;
    queued_ -= static_cast<uint32_t>(done);
  } while (queued_ > 0);
  // The system reads the tail in `enter` only: what it has not taken is ours again, and lies where it will look next.
  __atomic_store_n(sq_tail_, *sq_tail_ - queued_, __ATOMIC_RELEASE);
  return error;
}

void Uring::withdraw(uint64_t user_data) {
  for (uint32_t i = 0; i < queued_; i++) {
    io_uring_sqe& request = sqes_[(*sq_tail_ + i) & sq_mask_];
    if (request.user_data != user_data) continue;
    std::memset(&request, 0, sizeof request);
    request.opcode = IORING_OP_NOP;
    request.user_data = user_data;
  }
}

bool Uring::work_waits() const {
  return (__atomic_load_n(sq_flags_, __ATOMIC_RELAXED) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

}  // namespace sidetone
