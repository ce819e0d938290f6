// Recordings in a folder of their own, and what lies there when they are over.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "plane/recording/recorder.h"

namespace sidetone::test {

/** A folder that is gone afterwards, with what is in it. */
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/sidetone-recording-XXXXXX";
    path_ = ::mkdtemp(name) == nullptr ? "" : name;
  }
  ~Folder() {
    for (const std::string& file : files_) (void)::unlink(file.c_str());
    (void)::rmdir(path_.c_str());
  }
  std::string file(const char* name) { return files_.emplace_back(path_ + "/" + name); }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

struct Wav {
  bool whole = false;  // its two sizes are those of the file
  std::vector<int16_t> samples;
};

inline Wav read_wav(const std::string& path) {
  std::vector<uint8_t> bytes(1 << 20);
  const int fd = ::open(path.c_str(), O_RDONLY);
  const ssize_t count = fd < 0 ? 0 : ::read(fd, bytes.data(), bytes.size());
  if (fd >= 0) ::close(fd);
  Wav wav;
  if (count < static_cast<ssize_t>(RecordingFile::header_bytes)) return wav;
  uint32_t sizes[2];
  std::memcpy(&sizes[0], &bytes[4], 4);
  std::memcpy(&sizes[1], &bytes[40], 4);
  wav.samples.resize((static_cast<size_t>(count) - RecordingFile::header_bytes) / 2);
  if (!wav.samples.empty())
    std::memcpy(wav.samples.data(), &bytes[RecordingFile::header_bytes], wav.samples.size() * 2);
  wav.whole = sizes[0] == count - 8 && sizes[1] == wav.samples.size() * 2;
  return wav;
}

/** Waits for the writing threads, at most ten seconds. */
inline bool over(Recorder& recorder, Notices& notices) {
  for (int i = 0; i < 1000; i++) {
    if (recorder.over(notices)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace sidetone::test
