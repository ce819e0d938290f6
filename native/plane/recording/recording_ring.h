// The ring of a recording is a small file in memory (tmpfs). What a tick has put into it outlives the process, because
// `kill -9` takes the anonymous memory of a process, not its files. The next start appends to the WAV what it does not
// have yet (src/media/recording/recording-ring.ts).
//
//   0       8        12     16          20          24     28     64   128    192    4096
//   magic   version  rate   ring bytes  name bytes  check  0 …    put  taken  name   ring
//
// All little-endian. `check` is FNV-1a of what never changes: bytes 0 to 24 and 192 to 4096. A position is one word of
// 64 bits: the number of bytes ever put or written to the WAV (which ends below 2^31), and above it its complement, so
// that a damaged one is seen.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace sidetone {

class RecordingRing {
 public:
  static constexpr uint32_t version = 1;
  static constexpr size_t header_bytes = 4096;
  static constexpr size_t put_at = 64;
  static constexpr size_t taken_at = 128;
  static constexpr size_t name_at = 192;
  static constexpr size_t name_max = 255;

  /**
   * Makes the file, whose folder exists, with all of its memory reserved and mapped: nothing that is put later can meet
   * a full tmpfs or a missing page. Not for a tick. `wav`: the name of the recording's file. nullptr when there is no
   * such place, no room, or a file of that name.
   */
  static std::unique_ptr<RecordingRing> make(const std::string& path, const std::string& wav, uint32_t rate_hz,
                                             size_t bytes);
  /** Removes the file, if that was not done. Not for a tick. */
  ~RecordingRing();
  RecordingRing(const RecordingRing&) = delete;
  RecordingRing& operator=(const RecordingRing&) = delete;

  /** The file as it is mapped: the ring is at `header_bytes`. */
  uint8_t* memory() const { return memory_; }
  /** What lies below this position is in the ring, or in the WAV. After the bytes themselves. */
  static void put(uint8_t* memory, uint64_t position) { publish(memory + put_at, position); }
  /** What lies below this position is in the WAV. */
  static void taken(uint8_t* memory, uint64_t position) { publish(memory + taken_at, position); }
  /** The WAV is complete: nothing is left to recover. The memory stays until the end of this. */
  void remove();

 private:
  using Word = std::atomic<uint64_t>;
  static_assert(sizeof(Word) == sizeof(uint64_t) && Word::is_always_lock_free, "a position is one word of the file");

  RecordingRing(std::string path, uint8_t* memory, size_t size)
      : path_(std::move(path)), memory_(memory), size_(size) {}
  static void publish(uint8_t* word, uint64_t position) {
    const uint32_t low = static_cast<uint32_t>(position);
    reinterpret_cast<Word*>(word)->store(static_cast<uint64_t>(~low) << 32 | low, std::memory_order_release);
  }

  std::string path_;
  uint8_t* const memory_;
  const size_t size_;
};

}  // namespace sidetone
