// The packets of a tick, sent with one system call: an io_uring takes them all and sends each at once, in order (Linux 6.0). Where the system has
// none, or does not permit it, `create` gives nothing and each packet is a call of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plane/address.h"

struct io_uring_sqe;
struct io_uring_cqe;

namespace sidetone {

class Leg;

class Sender {
 public:
  static std::unique_ptr<Sender> create();
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /** Queues one packet of `leg`; its bytes and its address stay as they are until `flush`. */
  void add(Leg& leg, int fd, const Address& to, const uint8_t* bytes, size_t count);
  /** Sends what is queued. A leg whose packet was refused is told. */
  void flush();

 private:
  Sender() = default;
  bool map();
  void reap();

  static constexpr uint32_t entries = 1024;

  int fd_ = -1;
  uint32_t queued_ = 0;
  void* ring_ = nullptr;
  size_t ring_bytes_ = 0;
  io_uring_sqe* sqes_ = nullptr;
  size_t sqe_bytes_ = 0;
  uint32_t* sq_tail_ = nullptr;
  uint32_t* sq_array_ = nullptr;
  uint32_t sq_mask_ = 0;
  uint32_t* cq_head_ = nullptr;
  uint32_t* cq_tail_ = nullptr;
  uint32_t cq_mask_ = 0;
  io_uring_cqe* cqes_ = nullptr;
};

}  // namespace sidetone
