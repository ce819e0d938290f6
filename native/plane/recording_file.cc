#include "plane/recording_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace sidetone {
namespace {

int64_t clock_us() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000 + time.tv_nsec / 1000;
}

/** The files of the process and the two threads that serve them. Never destroyed: its threads outlive main. */
class Desk {
 public:
  static Desk& only() {
    static Desk* desk = new Desk();
    return *desk;
  }

  void add(const std::shared_ptr<RecordingFile>& file) {
    const std::lock_guard<std::mutex> lock(mutex_);
    writing_.push_back(file);
    syncing_.push_back(file);
    if (running_) return;
    running_ = true;
    std::thread([this] { loop(writing_, write); }).detach();
    std::thread([this] { loop(syncing_, sync); }).detach();
  }

 private:
  using Files = std::vector<std::shared_ptr<RecordingFile>>;
  using Done = std::vector<const RecordingFile*>;
  /** From so many on, one call for a whole file system costs less than one for each file. */
  static constexpr size_t together_least = 8;

  static Done write(const Files& files) {
    Done done;
    for (const auto& file : files) {
      if (!file->write()) done.push_back(file.get());
    }
    return done;
  }

  static Done sync(const Files& files) {
    Done done;
    const int64_t now_us = clock_us();
    Files due;
    for (const auto& file : files) {
      if (file->due(now_us)) due.push_back(file);
      else if (file->closed()) done.push_back(file.get());
    }
    // Recordings of one platform lie on one file system; a file elsewhere would be made durable by its own call.
    const dev_t device = due.empty() ? 0 : due.front()->device();
    const bool together = due.size() >= together_least && due.front()->sync_all();
    for (const auto& file : due) {
      const bool durable = (together && file->device() == device) || file->sync();
      if (!file->synced(durable)) done.push_back(file.get());
    }
    return done;
  }

  template <typename Serve>
  void loop(Files& files, Serve serve) {
    auto next = std::chrono::steady_clock::now();
    while (true) {
      next += std::chrono::milliseconds(RecordingFile::write_every_ms);
      const auto now = std::chrono::steady_clock::now();
      if (next < now) next = now;
      std::this_thread::sleep_until(next);
      Files round;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        round = files;
      }
      const Done done = serve(round);
      if (done.empty()) continue;
      const std::lock_guard<std::mutex> lock(mutex_);
      size_t kept = 0;
      for (auto& file : files) {
        bool over = false;
        for (const RecordingFile* each : done) over = over || each == file.get();
        if (!over) std::swap(files[kept++], file);
      }
      files.resize(kept);
    }
  }

  std::mutex mutex_;
  bool running_ = false;
  std::vector<std::shared_ptr<RecordingFile>> writing_;
  std::vector<std::shared_ptr<RecordingFile>> syncing_;
};

void le32(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = static_cast<uint8_t>(value >> (8 * i));
}

void le16(uint8_t* at, uint32_t value) {
  at[0] = static_cast<uint8_t>(value);
  at[1] = static_cast<uint8_t>(value >> 8);
}

}  // namespace

RecordingFile::RecordingFile(std::string path, uint32_t rate_hz, uint64_t most_bytes)
    : path_(std::move(path)), rate_hz_(rate_hz), most_bytes_(most_bytes), ring_bytes_(static_cast<size_t>(rate_hz) * 2 * queue_ms / 1000), ring_(new uint8_t[ring_bytes_]) {}

RecordingFile::~RecordingFile() {
  const int fd = fd_.load();
  if (fd >= 0) ::close(fd);
}

std::shared_ptr<RecordingFile> RecordingFile::open(const std::string& path, uint32_t rate_hz, uint64_t most_bytes) {
  auto file = std::make_shared<RecordingFile>(path, rate_hz, most_bytes);
  Desk::only().add(file);
  return file;
}

void RecordingFile::fail(Fault fault) {
  Fault none = Fault::none;
  (void)fault_.compare_exchange_strong(none, fault);
  state_.store(State::failed, std::memory_order_release);
}

bool RecordingFile::put(const int16_t* pcm, size_t count) {
  if (state() == State::failed) return false;
  const uint64_t put = put_.load(std::memory_order_relaxed);
  const size_t bytes = count * sizeof(int16_t);
  if (put + bytes > most_bytes_) {
    fail(Fault::too_long);
    return false;
  }
  if (put + bytes - taken_.load(std::memory_order_acquire) > ring_bytes_) {
    fail(Fault::too_slow);
    return false;
  }
  const size_t at = static_cast<size_t>(put % ring_bytes_);
  const size_t first = bytes < ring_bytes_ - at ? bytes : ring_bytes_ - at;
  const uint8_t* from = reinterpret_cast<const uint8_t*>(pcm);  // WAV is little-endian, as are the processors this runs on
  std::memcpy(&ring_[at], from, first);
  if (first < bytes) std::memcpy(&ring_[0], from + first, bytes - first);
  samples_ += count;
  put_.store(put + bytes, std::memory_order_release);
  return true;
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

bool RecordingFile::write() {
  if (complete_.load() || state() == State::ended) return false;
  if (fd_.load() < 0) {
    if (closed()) return false;  // there is no file
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    fd_.store(fd);
    if (fd < 0) {
      fail(Fault::cannot_open);
      closed_.store(true, std::memory_order_release);
      return false;
    }
    struct stat about;
    if (::fstat(fd, &about) == 0) device_.store(about.st_dev);
    if (!write_header(0, true)) {
      fail(Fault::cannot_write);
      complete_.store(true);
      return false;
    }
  }
  const bool last = finishing_.load(std::memory_order_acquire) || state() == State::failed;
  const uint64_t put = put_.load(std::memory_order_acquire);
  uint64_t taken = taken_.load(std::memory_order_relaxed);
  while (taken < put) {
    const size_t at = static_cast<size_t>(taken % ring_bytes_);
    const size_t rest = static_cast<size_t>(put - taken);
    const size_t count = rest < ring_bytes_ - at ? rest : ring_bytes_ - at;
    if (!write_all(&ring_[at], count, header_bytes + taken)) {
      fail(Fault::cannot_write);
      // What is there stays playable, and ends where its header says.
      const bool whole = write_header(taken, false) && ::ftruncate(fd_.load(), static_cast<off_t>(header_bytes + taken)) == 0;
      (void)whole;
      complete_.store(true);
      return false;
    }
    taken += count;
    taken_.store(taken, std::memory_order_release);
  }
  if (!last) return true;
  if (!write_header(taken, false)) fail(Fault::cannot_write);
  complete_.store(true, std::memory_order_release);
  return false;
}

bool RecordingFile::due(int64_t now_us) {
  due_complete_ = complete_.load(std::memory_order_acquire);
  due_ = taken_.load(std::memory_order_acquire);
  if (fd_.load() < 0) return false;
  if (!due_complete_ && (due_ == synced_ || (synced_ > 0 && now_us - synced_us_ < sync_every_us))) return false;
  synced_us_ = now_us;
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
