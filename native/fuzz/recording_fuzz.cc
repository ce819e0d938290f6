// The file of a recording, its two writing threads played by hand in any order: whatever is put, refused or cut off, a closed file is a WAV of exactly
// the samples that were taken.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "plane/recording_file.h"

using namespace sidetone;

namespace {

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

std::vector<uint8_t> contents() {
  std::vector<uint8_t> bytes;
  const int fd = ::open(path().c_str(), O_RDONLY);
  if (fd < 0) __builtin_trap();
  uint8_t part[65536];
  ssize_t count;
  while ((count = ::read(fd, part, sizeof part)) > 0) bytes.insert(bytes.end(), part, part + count);
  ::close(fd);
  return bytes;
}

uint32_t le32(const std::vector<uint8_t>& bytes, size_t at) {
  return static_cast<uint32_t>(bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16) | static_cast<uint32_t>(bytes[at + 3]) << 24;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint64_t most = 2 + data[0] * 512u;  // bytes of sound, so that `too_long` is met
  (void)::unlink(path().c_str());
  RecordingFile file(path(), data[1] % 2 == 0 ? 8000 : 16000, most);
  std::vector<int16_t> taken;
  int64_t now_us = 1'000'000;
  bool writing = true;
  bool syncing = true;
  for (size_t at = 2; at < size && taken.size() < 200'000; at++) {
    const uint8_t what = data[at];
    if (what < 160) {
      std::vector<int16_t> pcm(1 + what * (what < 8 ? 700u : 3u));
      for (size_t i = 0; i < pcm.size(); i++) pcm[i] = static_cast<int16_t>(i * 257 + at);
      const RecordingFile::Fault before = file.fault();
      const bool put = file.put(pcm.data(), pcm.size());
      if (put != (file.fault() == RecordingFile::Fault::none) || (before != RecordingFile::Fault::none && put)) __builtin_trap();
      if (put) taken.insert(taken.end(), pcm.begin(), pcm.end());
    } else if (what < 200) {
      if (writing) writing = file.write();
    } else if (what < 240) {
      now_us += what * 10'000;
      if (syncing && file.due(now_us)) syncing = file.synced(file.sync());
    } else if (what == 255) {
      file.finish();
      break;
    }
  }
  if (file.samples() != taken.size() || taken.size() * 2 > most) __builtin_trap();
  file.finish();
  for (int i = 0; i < 4 && writing; i++) writing = file.write();
  for (int i = 0; i < 4 && syncing; i++) {
    now_us += 2'000'000;
    if (file.due(now_us)) syncing = file.synced(file.sync());
  }
  if (writing || syncing || !file.closed()) __builtin_trap();
  const bool failed = file.fault() != RecordingFile::Fault::none;
  if (file.state() != (failed ? RecordingFile::State::failed : RecordingFile::State::ended)) __builtin_trap();
  const std::vector<uint8_t> bytes = contents();
  (void)::unlink(path().c_str());
  if (bytes.size() != RecordingFile::header_bytes + taken.size() * 2) __builtin_trap();
  if (le32(bytes, 4) != bytes.size() - 8 || le32(bytes, 40) != taken.size() * 2) __builtin_trap();
  if (!taken.empty() && std::memcmp(bytes.data() + RecordingFile::header_bytes, taken.data(), taken.size() * 2) != 0) __builtin_trap();
  return 0;
}
