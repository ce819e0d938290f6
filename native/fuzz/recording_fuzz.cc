// The file of a recording, its two writing threads played by hand in any order: whatever is put, refused or cut off, a
// closed file is a WAV of exactly the samples that were taken; and until then, where the ring lasts, what the file does
// not have is in the ring.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "plane/recording/recording_file.h"

using namespace sidetone;

namespace {

const std::string& ring_path();

const std::string& path() {
  static const std::string only = [] {
    char name[] = "/tmp/sidetone-recording-fuzz-XXXXXX";
    const int fd = ::mkstemp(name);
    if (fd < 0) __builtin_trap();
    ::close(fd);
    return std::string(name);
  }();
  return only;
}

const std::string& ring_path() {
  static const std::string only = path() + ".ring";
  return only;
}

std::vector<uint8_t> contents(const std::string& name) {
  std::vector<uint8_t> bytes;
  const int fd = ::open(name.c_str(), O_RDONLY);
  if (fd < 0) __builtin_trap();
  uint8_t part[65536];
  ssize_t count;
  while ((count = ::read(fd, part, sizeof part)) > 0) bytes.insert(bytes.end(), part, part + count);
  ::close(fd);
  return bytes;
}

uint32_t le32(const std::vector<uint8_t>& bytes, size_t at) {
  return static_cast<uint32_t>(bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16) |
         static_cast<uint32_t>(bytes[at + 3]) << 24;
}

/** A `kill -9` now: the file, and what the ring has beyond it, are what was taken. */
void check_left(const std::vector<int16_t>& taken) {
  std::vector<uint8_t> left = contents(path());
  left.erase(left.begin(), left.begin() + RecordingFile::header_bytes);
  const std::vector<uint8_t> ring = contents(ring_path());
  const uint32_t put = le32(ring, RecordingRing::put_at);
  const size_t bytes = ring.size() - RecordingRing::header_bytes;
  if (put != taken.size() * 2 || left.size() > put || put - left.size() > bytes ||
      left.size() < le32(ring, RecordingRing::taken_at))
    __builtin_trap();
  while (left.size() < put) left.push_back(ring[RecordingRing::header_bytes + left.size() % bytes]);
  if (!left.empty() && std::memcmp(left.data(), taken.data(), left.size()) != 0) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint64_t most = 2 + data[0] * 512u;  // bytes of sound, so that `too_long` is met
  (void)::unlink(path().c_str());
  (void)::unlink(ring_path().c_str());
  RecordingFile file({path(), data[1] % 4 < 2 ? ring_path() : ""}, data[1] % 2 == 0 ? 8000 : 16000, most);
  bool complete = false;
  std::vector<int16_t> taken;
  uint32_t cycle = 0;
  bool writing = true;
  bool syncing = true;
  for (size_t at = 2; at < size && taken.size() < 200'000; at++) {
    const uint8_t what = data[at];
    if (what < 160) {
      std::vector<int16_t> pcm(1 + what * (what < 8 ? 700u : 3u));
      for (size_t i = 0; i < pcm.size(); i++) pcm[i] = static_cast<int16_t>(i * 257 + at);
      const RecordingFile::Fault before = file.fault();
      const bool put = file.put(pcm.data(), pcm.size());
      if (put != (file.fault() == RecordingFile::Fault::none) || (before != RecordingFile::Fault::none && put))
        __builtin_trap();
      if (put) taken.insert(taken.end(), pcm.begin(), pcm.end());
    } else if (what < 200) {
      const RecordingFile::Extent extent = what < 170   ? file.wanted(what)
                                           : what < 190 ? RecordingFile::Extent::pages
                                                        : RecordingFile::Extent::all;
      if (writing) writing = file.write(extent);
      complete = complete || !writing;
    } else if (what < 240) {
      if (file.lasting() && !complete) check_left(taken);
      if (what % 4 == 0) cycle++;
      if (syncing && file.due(cycle)) syncing = file.synced(file.sync());
    } else if (what == 255) {
      file.finish();
      break;
    }
  }
  if (file.samples() != taken.size() || taken.size() * 2 > most) __builtin_trap();
  file.finish();
  for (int i = 0; i < 4 && writing; i++) writing = file.write();
  for (int i = 0; i < 4 && syncing; i++) {
    cycle++;
    if (file.due(cycle)) syncing = file.synced(file.sync());
  }
  if (writing || syncing || !file.closed()) __builtin_trap();
  const bool failed = file.fault() != RecordingFile::Fault::none;
  if (file.state() != (failed ? RecordingFile::State::failed : RecordingFile::State::ended)) __builtin_trap();
  const std::vector<uint8_t> bytes = contents(path());
  (void)::unlink(path().c_str());
  if (::access(ring_path().c_str(), F_OK) == 0) __builtin_trap();
  if (bytes.size() != RecordingFile::header_bytes + taken.size() * 2) __builtin_trap();
  if (le32(bytes, 4) != bytes.size() - 8 || le32(bytes, 40) != taken.size() * 2) __builtin_trap();
  if (!taken.empty() && std::memcmp(bytes.data() + RecordingFile::header_bytes, taken.data(), taken.size() * 2) != 0)
    __builtin_trap();
  return 0;
}
