// The file of one recording. A tick fills a ring of bytes and a writing thread empties it, so that no tick ever waits
// for a disk. One thread writes for all recordings of the process, another makes what was written durable. Both begin
// with the first recording and never end.
//
//   tick ─ put ─► ring ─ twice a second ─► write ─► fdatasync
//
// The file is a WAV of 16-bit mono PCM. While it grows its two sizes say 0xFFFFFFFF; the last write corrects them.
//
// A write costs a file system some µs, however little it is, so there should be few. But what is only in the memory of
// a process is lost with it. Therefore the ring is a file in memory (recording_ring.h). The writing thread makes it,
// because a tick may not. A recording begins with a ring of the process; the first tick that finds the other ring
// carries over what is not written yet. Until then, without such a ring, and while someone listens, the file is written
// in every round.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "plane/recording/recording_ring.h"

namespace sidetone {

class RecordingFile {
 public:
  enum class State : uint32_t { open, started, ended, failed };
  /** The numbers are shared with src/media/worker/notice.ts. */
  enum class Fault : uint32_t { none = 0, cannot_open = 1, cannot_write = 2, too_slow = 3, too_long = 4 };

  static constexpr size_t header_bytes = 44;
  static constexpr size_t page_bytes = 4096;
  static constexpr uint32_t queue_ms = 4000;
  static constexpr uint32_t round_ms = 64;
  /** Rounds of a cycle, 512 ms: two pages of 8 kHz. With what is made durable after it, a power cut costs less than a
   * second. */
  static constexpr uint32_t cycle_rounds = 8;
  /** Each file is written in one of the first rounds of a cycle, and all are made durable after them: what that would
   * miss is young. */
  static constexpr uint32_t slots = 4;
  /** 2 GB: what every reader of WAV understands. */
  static constexpr uint64_t bytes_max = 0x7ffffff0;

  /** How much of what is queued is written: whole pages of the file cost half of what parts of them do. */
  enum class Extent : uint32_t { none, pages, all };

  struct Place {
    std::string wav;
    std::string ring;  // empty: the ring is lost with the process
  };

  /** Begins a recording in a new file; the file is opened by the writing thread. */
  static std::shared_ptr<RecordingFile> open(const Place& place, uint32_t rate_hz, uint64_t most_bytes = bytes_max);
  /**
   * Tells that someone listens to the file as it grows, or no longer does. It is written in every round meanwhile. Has
   * no effect on a file that is not being written.
   */
  static void follow(const std::string& wav, bool followed);
  /** Served by its owner. `most_bytes` of sound; the recording fails as `too_long` by what would be more. */
  RecordingFile(Place place, uint32_t rate_hz, uint64_t most_bytes = bytes_max);
  ~RecordingFile();
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;

  // The tick's side.
  /** Whether so many samples can be queued before any more is written. */
  bool has_room(size_t count) const;
  /** Queues samples. False when the recording has failed, or fails by this. */
  bool put(const int16_t* pcm, size_t count);
  /** Ends the file after what was put; it is `ended` when it is durable. */
  void finish() { finishing_.store(true, std::memory_order_release); }
  /** `started` once the first audio is durable. */
  State state() const { return state_.load(std::memory_order_acquire); }
  Fault fault() const { return fault_.load(std::memory_order_acquire); }
  uint32_t rate_hz() const { return rate_hz_; }
  uint64_t samples() const { return samples_; }
  /** Whether no thread touches the file any more. */
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  /** Audio that was handed to the file system, in ms. */
  uint64_t written_ms() const { return taken_.load(std::memory_order_acquire) / 2 * 1000 / rate_hz_; }

  // The writing threads' side.
  const std::string& wav() const { return place_.wav; }
  /** What to write in a round. */
  Extent wanted(uint32_t round);
  /** Writes what is queued. False when there is nothing more to do. */
  bool write(Extent extent = Extent::all);
  /** Whether what is put outlives the process. */
  bool lasting() const;
  /** The file system it lies on. */
  dev_t device() const { return device_.load(); }
  /** Whether something that was written wants to be durable now: the first audio, the end, and once a cycle. `synced`
   * then speaks of that. */
  bool due(uint32_t cycle);
  /** Makes this file durable alone. */
  bool sync();
  /** Makes the whole file system durable that it lies on: one journal commit for many files. */
  bool sync_all();
  /** What was due is durable, or was refused by the disk. A finished file is closed, and `ended`. False when there is
   * nothing more to do. */
  bool synced(bool durable);

 private:
  void fail(Fault fault);
  /** Fails a recording that has no file. */
  void refuse();
  size_t together(uint64_t from, uint64_t to) const;
  uint8_t* carry_over(uint8_t* offered, uint64_t put);
  bool begin();
  bool write_all(const uint8_t* bytes, size_t count, uint64_t at);
  bool write_header(uint64_t data_bytes, bool growing);
  /** Ends the writing. */
  void complete();

  const Place place_;
  std::unique_ptr<uint8_t[]> own_;       // not cleared: pages it never uses are never touched
  std::unique_ptr<RecordingRing> kept_;  // of the writing thread, which offers its memory
  // What a tick works with, in one line of the cache.
  alignas(64) const uint64_t most_bytes_;
  const size_t ring_bytes_;
  std::atomic<uint8_t*> ring_;              // where the tick puts
  std::atomic<uint8_t*> offered_{nullptr};  // where it shall
  std::atomic<uint64_t> put_{0};            // bytes ever put
  uint64_t samples_ = 0;
  const uint32_t rate_hz_;
  // What the writing thread looks at in every round.
  alignas(64) std::atomic<uint64_t> taken_{0};  // bytes ever written
  const uint32_t slot_;                         // its round in a cycle
  uint64_t put_before_ = 0;
  std::atomic<bool> finishing_{false};
  std::atomic<bool> followed_{false};
  std::atomic<bool> complete_{false};  // all is written, sizes too
  std::atomic<bool> closed_{false};
  std::atomic<State> state_{State::open};
  std::atomic<int> fd_{-1};
  bool lasts_ = false;
  std::atomic<Fault> fault_{Fault::none};
  std::atomic<dev_t> device_{0};
  uint64_t synced_ = 0;
  uint64_t due_ = 0;
  bool due_complete_ = false;
  uint32_t synced_cycle_ = 0;
};

}  // namespace sidetone
