// An io_uring (io_uring(7)): requests to the system and their completions, in two rings shared with it. The thread that
// enters it first owns it.
#pragma once
#include <linux/io_uring.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace sidetone {

class Uring {
 public:
  /** `flags`: of io_uring_setup(2). Nothing where the system has no such ring, or does not permit it. */
  static std::unique_ptr<Uring> create(uint32_t entries, uint32_t completions, uint32_t flags);
  ~Uring();
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;

  int fd() const { return fd_; }
  /** A cleared entry, to be submitted with the next `enter`; nullptr when all are taken. */
  io_uring_sqe* entry();
  /** How many entries wait for `enter`. */
  uint32_t queued() const { return queued_; }
  /** Submits what is queued. What the system cannot take now (EAGAIN, EBUSY, ENOMEM) stays queued for the next call.
   * `flags`: of io_uring_enter(2). Returns 0 or an errno. */
  int enter(uint32_t flags);
  /** Makes what is queued under this number do nothing, and complete. */
  void withdraw(uint64_t user_data);
  /** Forgets what is queued. */
  void drop() { queued_ = 0; }
  /** Whether the system says that it waits for `enter` to do what it put off (IORING_SETUP_TASKRUN_FLAG). It may say so
   * when nothing is left to do, and `enter` does not take that back. */
  bool work_waits() const;

  /** How many completions are there. */
  uint32_t completed() const { return __atomic_load_n(cq_tail_, __ATOMIC_ACQUIRE) - *cq_head_; }
  /** The completion at `index` of these. */
  const io_uring_cqe& completion(uint32_t index) const { return cqes_[(*cq_head_ + index) & cq_mask_]; }
  /** Gives the first `count` completions back to the system. */
  void forget(uint32_t count) { __atomic_store_n(cq_head_, *cq_head_ + count, __ATOMIC_RELEASE); }

 private:
  Uring() = default;

  int fd_ = -1;
  bool disabled_ = false;
  uint32_t queued_ = 0;
  void* ring_ = nullptr;
  size_t ring_bytes_ = 0;
  io_uring_sqe* sqes_ = nullptr;
  size_t sqe_bytes_ = 0;
  uint32_t entries_ = 0;
  const uint32_t* sq_flags_ = nullptr;
  uint32_t* sq_tail_ = nullptr;
  uint32_t* sq_array_ = nullptr;
  uint32_t sq_mask_ = 0;
  uint32_t* cq_head_ = nullptr;
  const uint32_t* cq_tail_ = nullptr;
  uint32_t cq_mask_ = 0;
  const io_uring_cqe* cqes_ = nullptr;
};

}  // namespace sidetone
