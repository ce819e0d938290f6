// The file of one recording: a ring of bytes that a tick fills and a writing thread empties, so that no tick ever waits for a disk. One thread
// writes for all recordings of the process, another makes what was written durable; both begin with the first recording and never end.
//
//   tick ─ put ─► ring ─ every 80 ms ─► write ─ at most once a second ─► fdatasync
//
// The file is a WAV of 16-bit mono PCM. While it grows its two sizes say 0xFFFFFFFF, the last write sets them right.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sidetone {

class RecordingFile {
 public:
  enum class State : uint32_t { open, started, ended, failed };
  /** The numbers are shared with src/media/notice.ts. */
  enum class Fault : uint32_t { none = 0, cannot_open = 1, cannot_write = 2, too_slow = 3, too_long = 4 };

  static constexpr size_t header_bytes = 44;
  static constexpr uint32_t queue_ms = 4000;
  static constexpr uint32_t write_every_ms = 80;
  static constexpr int64_t sync_every_us = 1'000'000;
  /** 2 GB: what every reader of WAV understands. */
  static constexpr uint64_t bytes_max = 0x7ffffff0;

  /** Begins a recording in a new file; the file is opened by the writing thread. */
  static std::shared_ptr<RecordingFile> open(const std::string& path, uint32_t rate_hz, uint64_t most_bytes = bytes_max);
  /** Served by its owner. `most_bytes` of sound; the recording fails as `too_long` by what would be more. */
  RecordingFile(std::string path, uint32_t rate_hz, uint64_t most_bytes = bytes_max);
  ~RecordingFile();
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;

  // The tick's side.
  /** Queues samples. False where the recording has failed, or fails by this. */
  bool put(const int16_t* pcm, size_t count);
  /** Nothing more is put: the file is finished, and then `ended`. */
  void finish() { finishing_.store(true, std::memory_order_release); }
  /** `started` once the first audio is durable. */
  State state() const { return state_.load(std::memory_order_acquire); }
  Fault fault() const { return fault_.load(std::memory_order_acquire); }
  uint32_t rate_hz() const { return rate_hz_; }
  uint64_t samples() const { return samples_; }
  /** No thread touches the file any more. */
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  /** Audio that was handed to the file system, in ms. */
  uint64_t written_ms() const { return taken_.load(std::memory_order_acquire) / 2 * 1000 / rate_hz_; }

  // The writing threads' side.
  /** Writes what is queued. False where there is nothing more to do. */
  bool write();
  /** The file system it lies on. */
  dev_t device() const { return device_.load(); }
  /** Whether something that was written wants to be durable now; `synced` then speaks of that. */
  bool due(int64_t now_us);
  /** Makes it durable by itself. */
  bool sync();
  /** Makes the whole file system durable that it lies on: one journal commit for many files. */
  bool sync_all();
  /** What was due is durable, or was refused by the disk. A finished file is closed, and `ended`. False where there is nothing more to do. */
  bool synced(bool durable);

 private:
  void fail(Fault fault);
  bool write_all(const uint8_t* bytes, size_t count, uint64_t at);
  bool write_header(uint64_t data_bytes, bool growing);

  const std::string path_;
  const uint32_t rate_hz_;
  const uint64_t most_bytes_;
  const size_t ring_bytes_;
  const std::unique_ptr<uint8_t[]> ring_;  // not cleared: pages it never uses are never touched
  std::atomic<uint64_t> put_{0};    // bytes ever put
  std::atomic<uint64_t> taken_{0};  // bytes ever written
  uint64_t samples_ = 0;
  std::atomic<bool> finishing_{false};
  std::atomic<bool> complete_{false};  // all is written, sizes too
  std::atomic<State> state_{State::open};
  std::atomic<Fault> fault_{Fault::none};
  std::atomic<int> fd_{-1};
  std::atomic<bool> closed_{false};
  std::atomic<dev_t> device_{0};
  uint64_t synced_ = 0;
  uint64_t due_ = 0;
  bool due_complete_ = false;
  int64_t synced_us_ = 0;
};

}  // namespace sidetone
