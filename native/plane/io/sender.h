// The packets of a tick, sent with one system call: an io_uring takes them all and sends each at once, in order
// (Linux 6.0). Where the system has none, or does not permit it, `create` gives nothing and each packet is a call of
// its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plane/io/address.h"
#include "plane/io/rtp_endpoint.h"
#include "plane/io/uring.h"

namespace sidetone {

class Sender {
 public:
  /** Makes a sender, or nullptr when the system has no such io_uring or does not permit it. */
  static std::unique_ptr<Sender> create();

  /** Queues one packet of `endpoint`, to the far end of a connected socket without `to`. Its bytes and its address stay
   * as they are until `flush`. */
  void add(RtpEndpoint& endpoint, int fd, const Address* to, const uint8_t* bytes, size_t count);
  /** Sends what is queued. An endpoint whose packet was refused is told. */
  void flush();
  /** How often packets were sent. */
  uint64_t flushes() const { return flushes_; }

 private:
  explicit Sender(std::unique_ptr<Uring> ring) : ring_(std::move(ring)) {}

  /** Few enough that the packets are still in the cache when the system copies them. */
  static constexpr uint32_t entries = 128;

  const std::unique_ptr<Uring> ring_;
  uint64_t flushes_ = 0;
};

}  // namespace sidetone
