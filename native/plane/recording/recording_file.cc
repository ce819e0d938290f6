#include "plane/recording/recording_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plane/thread.h"

namespace sidetone {
namespace {

/** The files of the process and the two threads that serve them. Never destroyed: its threads outlive main. */
class Desk {
 public:
  static Desk& only() {
    static Desk* desk = new Desk();
    return *desk;
  }

  /** Takes a file in. False where the system permits no thread that would serve it; the next file tries again. */
  bool add(const std::shared_ptr<RecordingFile>& file) {
    const std::lock_guard<std::mutex> lock(mutex_);
    writing_ = writing_ || begin([this] { loop(to_write_, &Desk::write); });
    syncing_ = syncing_ || begin([this] { loop(to_sync_, &Desk::sync); });
    if (!writing_ || !syncing_) return false;
    to_write_.push_back(file);
    to_sync_.push_back(file);
    by_name_[file->wav()] = file;
    return true;
  }

  std::shared_ptr<RecordingFile> find(const std::string& wav) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_name_.find(wav);
    return found == by_name_.end() ? nullptr : found->second.lock();
  }

 private:
  using Files = std::vector<std::shared_ptr<RecordingFile>>;
  /** So many files or more are made durable by one call for their file system, which then costs less. */
  static constexpr size_t together_least = 8;

  static bool begin(std::function<void()> work) {
    pthread_t thread;
    return begin_thread(thread, std::move(work)) == 0 && ::pthread_detach(thread) == 0;
  }

  void write(Files& files, uint32_t round) {
    drop(files, [this, round](const std::shared_ptr<RecordingFile>& file) {
      const RecordingFile::Extent extent = file->wanted(round);
      if (extent == RecordingFile::Extent::none || file->write(extent) || !file->closed()) return false;
      // Whoever lets go of it last gives its memory back to the system, which takes longer than a tick may.
      if (file.use_count() > 1) return false;
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto named = by_name_.find(file->wav());
      if (named != by_name_.end() && named->second.lock() == file) by_name_.erase(named);
      return true;
    });
    if (round % RecordingFile::cycle_rounds == RecordingFile::slots - 1) cycle_.fetch_add(1, std::memory_order_release);
  }

  void sync(Files& files, uint32_t) {
    const uint32_t cycle = cycle_.load(std::memory_order_acquire);
    std::vector<RecordingFile*> due;
    for (const auto& file : files) {
      if (file->due(cycle)) due.push_back(file.get());
    }
    // Recordings of one platform lie on one file system; a file elsewhere would be made durable by its own call.
    const dev_t device = due.empty() ? 0 : due.front()->device();
    const bool together = due.size() >= together_least && due.front()->sync_all();
    for (RecordingFile* file : due) file->synced((together && file->device() == device) || file->sync());
    drop(files, [](const std::shared_ptr<RecordingFile>& file) { return file->closed(); });
  }

  template <typename Over>
  static void drop(Files& files, Over over) {
    files.erase(std::remove_if(files.begin(), files.end(), over), files.end());
  }

  void loop(Files& arrived, void (Desk::*serve)(Files&, uint32_t)) {
    Files files;
    auto next = std::chrono::steady_clock::now();
    for (uint32_t round = 0;; round++) {
      next += std::chrono::milliseconds(RecordingFile::round_ms);
      const auto now = std::chrono::steady_clock::now();
      if (next < now) next = now;
      std::this_thread::sleep_until(next);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        files.insert(files.end(), arrived.begin(), arrived.end());
        arrived.clear();
      }
      (this->*serve)(files, round);
    }
  }

  std::atomic<uint32_t> cycle_{0};
  std::mutex mutex_;
  bool writing_ = false;
  bool syncing_ = false;
  Files to_write_;  // each thread takes over its own
  Files to_sync_;
  std::unordered_map<std::string, std::weak_ptr<RecordingFile>> by_name_;
};

/** The round of its cycle in which a file is written. Files that begin together are spread over the rounds. */
uint32_t next_slot() {
  static std::atomic<uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) % RecordingFile::slots;
}

void le32(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = static_cast<uint8_t>(value >> (8 * i));
}

void le16(uint8_t* at, uint32_t value) {
  at[0] = static_cast<uint8_t>(value);
  at[1] = static_cast<uint8_t>(value >> 8);
}

}  // namespace

RecordingFile::RecordingFile(Place place, uint32_t rate_hz, uint64_t most_bytes)
    : place_(std::move(place)),
      own_(new uint8_t[static_cast<size_t>(rate_hz) * 2 * queue_ms / 1000]),
      most_bytes_(most_bytes),
      ring_bytes_(static_cast<size_t>(rate_hz) * 2 * queue_ms / 1000),
      ring_(own_.get()),
      rate_hz_(rate_hz),
      slot_(next_slot()) {}

RecordingFile::~RecordingFile() {
  const int fd = fd_.load();
  if (fd >= 0) ::close(fd);
}

std::shared_ptr<RecordingFile> RecordingFile::open(const Place& place, uint32_t rate_hz, uint64_t most_bytes) {
  auto file = std::make_shared<RecordingFile>(place, rate_hz, most_bytes);
  if (!Desk::only().add(file)) file->refuse();
  return file;
}

void RecordingFile::follow(const std::string& wav, bool followed) {
  const std::shared_ptr<RecordingFile> file = Desk::only().find(wav);
  if (file) file->followed_.store(followed, std::memory_order_relaxed);
}

void RecordingFile::fail(Fault fault) {
  Fault none = Fault::none;
  (void)fault_.compare_exchange_strong(none, fault);
  state_.store(State::failed, std::memory_order_release);
}

void RecordingFile::refuse() {
  fail(Fault::cannot_open);
  closed_.store(true, std::memory_order_release);
}

bool RecordingFile::has_room(size_t count) const {
  return put_.load(std::memory_order_relaxed) + count * sizeof(int16_t) - taken_.load(std::memory_order_acquire) <=
         ring_bytes_;
}

/** How many of the bytes between two places lie in one piece in the ring. */
size_t RecordingFile::together(uint64_t from, uint64_t to) const {
  return static_cast<size_t>(std::min<uint64_t>(to - from, ring_bytes_ - from % ring_bytes_));
}

bool RecordingFile::put(const int16_t* pcm, size_t count) {
  if (state() == State::failed) return false;
  const uint64_t put = put_.load(std::memory_order_relaxed);
  const size_t bytes = count * sizeof(int16_t);
  if (put + bytes > most_bytes_) {
    fail(Fault::too_long);
    return false;
  }
  if (!has_room(count)) {
    fail(Fault::too_slow);
    return false;
  }
  uint8_t* ring = ring_.load(std::memory_order_relaxed);
  uint8_t* const offered = offered_.load(std::memory_order_acquire);
  if (offered != nullptr && ring != offered + RecordingRing::header_bytes) ring = carry_over(offered, put);
  const size_t at = static_cast<size_t>(put % ring_bytes_);
  const size_t first = together(put, put + bytes);
  const uint8_t* from =
      reinterpret_cast<const uint8_t*>(pcm);  // WAV is little-endian, as are the processors this runs on
  std::memcpy(ring + at, from, first);
  if (first < bytes) std::memcpy(ring, from + first, bytes - first);
  samples_ += count;
  put_.store(put + bytes, std::memory_order_release);
  if (offered != nullptr) RecordingRing::put(offered, put + bytes);
  return true;
}

/** What is put from now on goes to the ring that lasts, at the same places. Both hold what is not written yet, so it
 * may be written from either. */
uint8_t* RecordingFile::carry_over(uint8_t* offered, uint64_t put) {
  uint8_t* const ring = offered + RecordingRing::header_bytes;
  const uint8_t* const from = ring_.load(std::memory_order_relaxed);
  for (uint64_t done = taken_.load(std::memory_order_acquire); done < put;) {
    const size_t at = static_cast<size_t>(done % ring_bytes_);
    const size_t count = together(done, put);
    std::memcpy(ring + at, from + at, count);
    done += count;
  }
  ring_.store(ring, std::memory_order_release);
  RecordingRing::put(offered, put);
  return ring;
}

bool RecordingFile::lasting() const {
  const uint8_t* const offered = offered_.load(std::memory_order_acquire);
  return offered != nullptr && ring_.load(std::memory_order_acquire) == offered + RecordingRing::header_bytes;
}

bool RecordingFile::write_all(const uint8_t* bytes, size_t count, uint64_t at) {
  while (count > 0) {
    const ssize_t done = ::pwrite(fd_.load(), bytes, count, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    count -= static_cast<size_t>(done);
    at += static_cast<uint64_t>(done);
  }
  return true;
}

bool RecordingFile::write_header(uint64_t data_bytes, bool growing) {
  uint8_t header[header_bytes];
  std::memcpy(header, "RIFF....WAVEfmt ", 16);
  le32(header + 4, growing ? 0xffffffff : static_cast<uint32_t>(data_bytes + header_bytes - 8));
  le32(header + 16, 16);
  le16(header + 20, 1);
  le16(header + 22, 1);
  le32(header + 24, rate_hz_);
  le32(header + 28, rate_hz_ * 2);
  le16(header + 32, 2);
  le16(header + 34, 16);
  std::memcpy(header + 36, "data", 4);
  le32(header + 40, growing ? 0xffffffff : static_cast<uint32_t>(data_bytes));
  return write_all(header, sizeof header, 0);
}

RecordingFile::Extent RecordingFile::wanted(uint32_t round) {
  const uint64_t taken = taken_.load(std::memory_order_relaxed);
  // The file has not begun, is over, or has a listener who does not wait.
  if (taken == 0 || finishing_.load(std::memory_order_acquire) || state() == State::failed) return Extent::all;
  if (followed_.load(std::memory_order_relaxed) || !lasts_) return Extent::all;
  if (round % slots != slot_) return Extent::none;
  const uint64_t put = put_.load(std::memory_order_relaxed);
  if (round % cycle_rounds != slot_)
    return put - taken > ring_bytes_ / 2 ? Extent::pages : Extent::none;  // a tick that catches up
  const bool paused = put == put_before_;
  put_before_ = put;
  return paused ? Extent::all : Extent::pages;
}

/** Makes the file and the ring that lasts. */
bool RecordingFile::begin() {
  const int fd = ::open(place_.wav.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  fd_.store(fd);
  if (fd < 0) {
    refuse();
    return false;
  }
  struct stat about;
  if (::fstat(fd, &about) == 0) device_.store(about.st_dev);
  if (!write_header(0, true)) {
    fail(Fault::cannot_write);
    complete();
    return false;
  }
  if (place_.ring.empty()) return true;
  kept_ = RecordingRing::make(place_.ring, place_.wav.substr(place_.wav.rfind('/') + 1), rate_hz_, ring_bytes_);
  if (kept_ != nullptr) offered_.store(kept_->memory(), std::memory_order_release);
  return true;
}

bool RecordingFile::write(Extent extent) {
  if (complete_.load() || state() == State::ended) return false;
  if (fd_.load() < 0 && (closed() || !begin())) return false;
  const bool last = finishing_.load(std::memory_order_acquire) || state() == State::failed;
  // The order matters: what was put by then is in the ring that is read after it, and that is never the one given back.
  uint64_t put = put_.load(std::memory_order_acquire);
  if (!lasts_ && lasting()) {
    lasts_ = true;
    own_.reset();
  }
  const uint8_t* const ring = ring_.load(std::memory_order_acquire);
  uint64_t taken = taken_.load(std::memory_order_relaxed);
  if (extent == Extent::pages && !last) {
    const uint64_t whole = (header_bytes + put) / page_bytes * page_bytes;
    put = whole > header_bytes + taken ? whole - header_bytes : taken;
  }
  while (taken < put) {
    const size_t count = together(taken, put);
    if (!write_all(ring + taken % ring_bytes_, count, header_bytes + taken)) {
      fail(Fault::cannot_write);
      // What is there stays playable, and ends where its header says. A full disk may refuse a header, but no cut.
      const bool cut = ::ftruncate(fd_.load(), static_cast<off_t>(header_bytes + taken)) == 0;
      const bool told = write_header(taken, false);
      (void)(cut && told);
      complete();
      return false;
    }
    taken += count;
    taken_.store(taken, std::memory_order_release);
    if (kept_ != nullptr) RecordingRing::taken(kept_->memory(), taken);
  }
  if (!last) return true;
  if (!write_header(taken, false)) fail(Fault::cannot_write);
  complete();
  return false;
}

void RecordingFile::complete() {
  if (kept_ != nullptr) kept_->remove();
  complete_.store(true, std::memory_order_release);
}

bool RecordingFile::due(uint32_t cycle) {
  due_complete_ = complete_.load(std::memory_order_acquire);
  due_ = taken_.load(std::memory_order_acquire);
  if (fd_.load() < 0) return false;
  if (!due_complete_ && (due_ == synced_ || (synced_ > 0 && cycle == synced_cycle_))) return false;
  synced_cycle_ = cycle;
  return true;
}

// What has nothing durable (a pipe, /dev/full) says EINVAL, which is no fault of the recording.
bool RecordingFile::sync() { return ::fdatasync(fd_.load()) == 0 || errno == EINVAL || errno == EROFS; }

bool RecordingFile::sync_all() { return ::syncfs(fd_.load()) == 0; }

bool RecordingFile::synced(bool durable) {
  if (!durable) fail(Fault::cannot_write);
  synced_ = due_;
  State expected = State::open;
  if (due_ > 0) (void)state_.compare_exchange_strong(expected, State::started);
  if (!due_complete_) return true;
  ::close(fd_.exchange(-1));
  if (state() != State::failed) state_.store(State::ended, std::memory_order_release);
  closed_.store(true, std::memory_order_release);
  return false;
}

}  // namespace sidetone
