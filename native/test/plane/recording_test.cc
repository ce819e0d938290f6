#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "plane/recording/recorder.h"
#include "test/check.h"
#include "test/plane/recording_files.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

std::vector<int16_t> frame(int number) { return std::vector<int16_t>(160, static_cast<int16_t>(number + 1)); }

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
  RecordingFile file({path, ""}, 8000);
  CHECK(file.write());  // opened, then nobody comes to write for four seconds
  int put = 0;
  while (put < 1000 && file.put(frame(put).data(), 160)) put++;
  CHECK(put == static_cast<int>(RecordingFile::queue_ms) / 20);
  CHECK(file.state() == RecordingFile::State::failed && file.fault() == RecordingFile::Fault::too_slow);
  CHECK(!file.put(frame(put).data(), 160));
  CHECK(!file.write());
  CHECK(file.due(1) && !file.synced(file.sync()));
  CHECK(file.closed() && file.written_ms() == RecordingFile::queue_ms &&
        file.fault() == RecordingFile::Fault::too_slow);
  const Wav wav = read_wav(path);
  CHECK(wav.whole && wav.samples.size() == static_cast<size_t>(put) * 160);
  for (size_t i = 0; i < wav.samples.size(); i++) CHECK(wav.samples[i] == static_cast<int16_t>(i / 160 + 1));
}

TEST(
    "a file that holds up the writing thread makes the others too slow, never a tick, and they go on once it is gone") {
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

TEST(
    "a pause of the whole process that is longer than the queue is silence in a recording with gaps, and not its end") {
  constexpr int spoken = 10;
  constexpr int paused = 300;  // frames: six seconds, where four fit
  Folder folder;
  const std::string path = folder.file("paused.wav");
  RecorderOptions with_gaps = options(path);
  with_gaps.include_gaps = true;
  Notices notices;
  Recorder recorder(with_gaps);
  for (int i = 0; i < spoken; i++) recorder.take(frame(i).data(), 0, true, -20, notices);
  recorder.gap(paused);
  for (int i = 0; i < 200; i++) {
    recorder.take(frame(i).data(), 0, true, -20, notices);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(recorder.taking());
  recorder.stop();
  CHECK(over(recorder, notices) && notices.back().kind == NoticeKind::recording_ended);
  const Wav wav = read_wav(path);
  CHECK(wav.whole && wav.samples.size() == static_cast<size_t>(spoken + paused + 200) * 160);
  for (size_t i = 0; i < spoken * 160; i++) CHECK(wav.samples[i] == static_cast<int16_t>(i / 160 + 1));
  for (size_t i = spoken * 160; i < (spoken + paused) * 160; i++) CHECK(wav.samples[i] == 0);
  CHECK(wav.samples.back() == 200);  // what was said after it is heard again
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

namespace {

/** The file of a ring, as the next process finds it. */
struct LeftRing {
  bool there = false;
  uint32_t put = 0;
  uint32_t taken = 0;
  bool sound = false;  // both positions stand above their complements
  std::vector<uint8_t> bytes;
};

LeftRing left_ring(const std::string& path) {
  LeftRing ring;
  const int fd = ::open(path.c_str(), O_RDONLY);
  if (fd < 0) return ring;
  std::vector<uint8_t> file(1 << 20);
  const ssize_t count = ::read(fd, file.data(), file.size());
  ::close(fd);
  ring.there = true;
  if (count < static_cast<ssize_t>(RecordingRing::header_bytes)) return ring;
  uint32_t words[4];
  std::memcpy(&words[0], &file[RecordingRing::put_at], 8);
  std::memcpy(&words[2], &file[RecordingRing::taken_at], 8);
  ring.put = words[0];
  ring.taken = words[2];
  ring.sound = words[1] == ~words[0] && words[3] == ~words[2];
  ring.bytes.assign(file.begin() + RecordingRing::header_bytes, file.begin() + count);
  return ring;
}

int16_t sample_at(const LeftRing& ring, uint64_t position) {
  const size_t at = static_cast<size_t>(position % ring.bytes.size());
  return static_cast<int16_t>(ring.bytes[at] | ring.bytes[at + 1] << 8);
}

}  // namespace

TEST(
    "what a tick has put is in the ring's file or in the WAV at every moment, whole and once, and the ring goes when "
    "the WAV is complete") {
  Folder folder;
  const std::string path = folder.file("kept.wav");
  const std::string ring_path = folder.file("kept.ring");
  RecordingFile file({path, ring_path}, 8000);
  int put = 0;
  for (; put < 3; put++) CHECK(file.put(frame(put).data(), 160));
  CHECK(!file.lasting() && !left_ring(ring_path).there);
  CHECK(file.write());  // made by the writing thread, taken over by the next tick
  CHECK(!file.lasting() && left_ring(ring_path).put == 0 && left_ring(ring_path).sound);
  for (uint32_t round = 0; round < 200; round++) {
    for (int i = 0; i < 3; i++, put++) CHECK(file.put(frame(put).data(), 160));
    CHECK(file.lasting());
    const RecordingFile::Extent extent = file.wanted(round);
    if (extent != RecordingFile::Extent::none) CHECK(file.write(extent));
    const LeftRing ring = left_ring(ring_path);
    const Wav wav = read_wav(path);
    CHECK(ring.sound && ring.put == static_cast<uint32_t>(put) * 320 && ring.bytes.size() == 64'000);
    CHECK(ring.taken == wav.samples.size() * 2 && ring.put - ring.taken <= 64'000);
    for (uint64_t at = ring.taken; at < ring.put; at += 2)
      CHECK(sample_at(ring, at) == static_cast<int16_t>(at / 320 + 1));
  }
  struct stat about;
  CHECK(::stat(ring_path.c_str(), &about) == 0 && (about.st_mode & 0777) == 0600);
  file.finish();
  CHECK(file.wanted(0) == RecordingFile::Extent::all && !file.write());
  CHECK(!left_ring(ring_path).there);
  const Wav wav = read_wav(path);
  CHECK(wav.whole && wav.samples.size() == static_cast<size_t>(put) * 160);
  for (size_t i = 0; i < wav.samples.size(); i++) CHECK(wav.samples[i] == static_cast<int16_t>(i / 160 + 1));
}

TEST(
    "a recording whose ring lasts is written once a cycle, in whole pages, a pause to the end; without one, or "
    "listened to, in every round") {
  Folder folder;
  const std::string path = folder.file("seldom.wav");
  RecordingFile file({path, folder.file("seldom.ring")}, 8000);
  CHECK(file.put(frame(0).data(), 160) && file.write() && file.put(frame(1).data(), 160) && file.write());
  for (int i = 0; i < 20; i++) CHECK(file.put(frame(0).data(), 160));
  int writes = 0;
  for (uint32_t round = 0; round < 10 * RecordingFile::cycle_rounds; round++) {
    CHECK(file.put(frame(0).data(), 160) && file.put(frame(0).data(), 160) && file.put(frame(0).data(), 160));
    const RecordingFile::Extent extent = file.wanted(round);
    if (extent == RecordingFile::Extent::none) continue;
    writes++;
    CHECK(extent == RecordingFile::Extent::pages && file.write(extent));
    CHECK((RecordingFile::header_bytes + read_wav(path).samples.size() * 2) % RecordingFile::page_bytes == 0);
  }
  CHECK(writes == 10);
  for (uint32_t round = 0; round < 2 * RecordingFile::cycle_rounds; round++) CHECK(file.write(file.wanted(round)));
  CHECK(read_wav(path).samples.size() == file.samples());
  // A tick that catches up with a stall does not wait for its turn.
  for (int i = 0; i < 120; i++) CHECK(file.put(frame(0).data(), 160));
  int sooner = 0;
  for (uint32_t round = 4; round < 8; round++) sooner += file.wanted(round) == RecordingFile::Extent::pages ? 1 : 0;
  CHECK(sooner == 1);

  RecordingFile fleeting({folder.file("often.wav"), ""}, 8000);
  RecordingFile homeless({folder.file("homeless.wav"), "/nowhere/at.all"}, 8000);
  for (RecordingFile* each : {&fleeting, &homeless}) {
    for (uint32_t round = 0; round < 8; round++) {
      CHECK(each->put(frame(0).data(), 160) && each->wanted(round) == RecordingFile::Extent::all && each->write());
      CHECK(!each->lasting() && each->written_ms() == (round + 1) * 20);
    }
  }
}

TEST("a ring is made in a new file only, with all of its memory, or not at all") {
  Folder folder;
  const std::string taken = folder.file("taken.ring");
  const int fd = ::open(taken.c_str(), O_CREAT | O_WRONLY, 0600);
  CHECK(fd >= 0 && ::write(fd, "mine", 4) == 4);
  ::close(fd);
  CHECK(RecordingRing::make(taken, "a.wav", 8000, 64'000) == nullptr);
  CHECK(left_ring(taken).there);
  const std::string link = folder.file("link.ring");
  const std::string target = folder.file("target.ring");
  CHECK(::symlink(target.c_str(), link.c_str()) == 0);
  CHECK(RecordingRing::make(link, "a.wav", 8000, 64'000) == nullptr && !left_ring(target).there);
  CHECK(RecordingRing::make(folder.file("long.ring"), std::string(256, 'x'), 8000, 64'000) == nullptr);
  // More than there is: refused when it is made, and nothing is left of it.
  const std::string huge = folder.file("huge.ring");
  CHECK(RecordingRing::make(huge, "a.wav", 8000, static_cast<size_t>(1) << 52) == nullptr && !left_ring(huge).there);
  const std::string path = folder.file("ours.ring");
  {
    const std::unique_ptr<RecordingRing> ring = RecordingRing::make(path, "a.wav", 8000, 64'000);
    CHECK(ring != nullptr && left_ring(path).sound && left_ring(path).bytes.size() == 64'000);
    struct stat about;
    CHECK(::stat(path.c_str(), &about) == 0 && about.st_blocks * 512 >= 64'000 + 4096);
  }
  CHECK(!left_ring(path).there);
}

TEST(
    "recordings that are served by the writing threads leave no ring, however they end, and one that is listened to is "
    "written at once") {
  Folder folder;
  Notices notices;
  RecorderOptions kept = options(folder.file("kept.wav"));
  kept.ring = folder.file("kept.ring");
  RecorderOptions limited = options(folder.file("long.wav"));
  limited.ring = folder.file("long.ring");
  limited.most_bytes = 20 * 320;
  Recorder recorder(kept);
  Recorder longer(limited);
  bool rings = false;
  bool close = false;
  int taken = 0;
  // Real time, for at most ten seconds.
  for (; taken < 500 && !(rings && close); taken++) {
    recorder.take(frame(taken).data(), 0, true, -20, notices);
    longer.take(frame(taken).data(), 0, true, -20, notices);
    rings = rings || left_ring(kept.ring).put > 0;
    if (rings) RecordingFile::follow(kept.path, true);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    close = rings && taken > 20 && read_wav(kept.path).samples.size() >= static_cast<size_t>(taken - 10) * 160;
  }
  CHECK(rings && close);
  RecordingFile::follow(kept.path, false);
  RecordingFile::follow("/nobody/knows.wav", true);
  recorder.stop();
  notices.clear();
  CHECK(over(recorder, notices) && notices.back().kind == NoticeKind::recording_ended);
  for (int i = 0; i < 40; i++) longer.take(frame(i).data(), 0, true, -20, notices);
  CHECK(over(longer, notices) && notices.back().a == static_cast<uint32_t>(RecordingFile::Fault::too_long));
  CHECK(!left_ring(kept.ring).there && !left_ring(limited.ring).there);
  const Wav wav = read_wav(kept.path);
  CHECK(wav.whole && wav.samples.size() == static_cast<size_t>(taken) * 160);
  for (size_t i = 0; i < wav.samples.size(); i++) CHECK(wav.samples[i] == static_cast<int16_t>(i / 160 + 1));
}
