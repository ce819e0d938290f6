#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "plane/recorder.h"
#include "test/check.h"

using namespace sidetone;

namespace {

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

Wav read_wav(const std::string& path) {
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
  std::memcpy(wav.samples.data(), &bytes[RecordingFile::header_bytes], wav.samples.size() * 2);
  wav.whole = sizes[0] == count - 8 && sizes[1] == wav.samples.size() * 2;
  return wav;
}

std::vector<int16_t> frame(int number) { return std::vector<int16_t>(160, static_cast<int16_t>(number + 1)); }

/** Waits for the writing threads, at most ten seconds. */
bool over(Recorder& recorder, Notices& notices) {
  for (int i = 0; i < 1000; i++) {
    if (recorder.over(notices)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

RecorderOptions options(const std::string& path) {
  RecorderOptions options;
  options.id = 7;
  options.path = path;
  return options;
}

}  // namespace

TEST("a recording whose disk does not keep up ends as too slow, and what it holds is playable") {
  Folder folder;
  const std::string path = folder.file("slow.wav");
  RecordingFile file(path, 8000);
  CHECK(file.write());  // opened, then nobody comes to write for four seconds
  int put = 0;
  while (put < 1000 && file.put(frame(put).data(), 160)) put++;
  CHECK(put == static_cast<int>(RecordingFile::queue_ms) / 20);
  CHECK(file.state() == RecordingFile::State::failed && file.fault() == RecordingFile::Fault::too_slow);
  CHECK(!file.put(frame(put).data(), 160));
  CHECK(!file.write());
  CHECK(file.due(1'000'000) && !file.synced(file.sync()));
  CHECK(file.closed() && file.written_ms() == RecordingFile::queue_ms && file.fault() == RecordingFile::Fault::too_slow);
  const Wav wav = read_wav(path);
  CHECK(wav.whole && wav.samples.size() == static_cast<size_t>(put) * 160);
  for (size_t i = 0; i < wav.samples.size(); i++) CHECK(wav.samples[i] == static_cast<int16_t>(i / 160 + 1));
}

TEST("a file that holds up the writing thread makes the others too slow, never a tick, and they go on once it is gone") {
  Folder folder;
  const std::string pipe = folder.file("pipe");
  const std::string path = folder.file("behind.wav");
  CHECK(::mkfifo(pipe.c_str(), 0600) == 0);
  Notices notices;
  Recorder stuck(options(pipe));  // opening it waits for a reader
  Recorder behind(options(path));
  // Ten times as fast as real time: what is written every 80 ms always fits, what waits for seconds does not.
  bool failed = false;
  for (int i = 0; i < 20'000 && !failed; i++) {
    behind.take(frame(i).data(), 0, true, -20, notices);
    if (i % 10 == 9) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    failed = !behind.taking();
  }
  CHECK(failed);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  CHECK(reader >= 0);
  CHECK(over(stuck, notices) && notices.back().a == static_cast<uint32_t>(RecordingFile::Fault::cannot_write));
  CHECK(over(behind, notices) && notices.back().a == static_cast<uint32_t>(RecordingFile::Fault::too_slow));
  ::close(reader);
  const Wav wav = read_wav(path);
  CHECK(wav.whole && wav.samples.size() >= 200 * 160 && notices.back().b == wav.samples.size() / 8);
  Recorder next(options(folder.file("next.wav")));
  next.take(frame(0).data(), 0, true, -20, notices);
  next.stop();
  notices.clear();
  CHECK(over(next, notices));
  CHECK(notices.back().kind == NoticeKind::recording_ended && notices.back().a == 20);
}

TEST("a recording that reaches what a WAV can hold ends as too long, with all that fitted") {
  Folder folder;
  const std::string path = folder.file("long.wav");
  RecorderOptions limited = options(path);
  limited.most_bytes = 50 * 320 + 100;
  Recorder recorder(limited);
  Notices notices;
  for (int i = 0; i < 60; i++) recorder.take(frame(i).data(), 0, true, -20, notices);
  CHECK(over(recorder, notices));
  CHECK(notices.back().kind == NoticeKind::recording_failed && notices.back().leg == 7);
  CHECK(notices.back().a == static_cast<uint32_t>(RecordingFile::Fault::too_long));
  const Wav wav = read_wav(path);
  CHECK(notices.back().b == wav.samples.size() / 8);
  CHECK(wav.whole && wav.samples.size() == 50 * 160);
}
