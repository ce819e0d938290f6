// The inbox of a stream leg holds the audio that script hands to it: bytes of any size come in, frames go out at real
// time. Two threads touch it at once: the main thread writes, and the thread of the plane that has the leg takes.
// Blocks are made outside the lock, which is held for a few instructions only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sidetone {

class StreamInbox {
 public:
  /** An inbox and its number in the process. */
  static std::pair<uint32_t, std::shared_ptr<StreamInbox>> open();
  /** The inbox of a number, or nullptr. */
  static std::shared_ptr<StreamInbox> find(uint32_t number);
  /** Forgets the number. The inbox lives on while a leg has it. */
  static void close(uint32_t number);

  /** Queues bytes, unless `most` or more are waiting. One thread writes. */
  bool write(const uint8_t* bytes, size_t count, size_t most);
  /** Drops what is queued. */
  void clear();
  /** Whether something was dropped since the last call. */
  bool was_cleared();
  /** While it is on, nothing is taken. What is written waits. */
  void pause(bool on);
  /** Takes at most `count` bytes; whole samples of `unit` bytes only, unless `count` says otherwise. Returns how many.
   */
  size_t take(uint8_t* out, size_t count, size_t unit);
  /** How many bytes wait. */
  size_t queued();
  /** How many bytes were ever taken or dropped; wraps at 32 bits. */
  uint32_t passed();

  /** Pieces of a few bytes share blocks of so many: what waits takes twice its bytes at most, and not sixty times. */
  static constexpr size_t block_least_bytes = 4096;

 private:
  bool append(const uint8_t* bytes, size_t count);

  std::mutex mutex_;
  std::deque<std::vector<uint8_t>> blocks_;
  size_t head_ = 0;  // bytes of the first block that are gone
  size_t queued_ = 0;
  bool paused_ = false;
  bool cleared_ = false;
  uint32_t passed_ = 0;
};

}  // namespace sidetone
