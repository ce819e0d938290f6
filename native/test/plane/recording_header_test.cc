// The header of a recording's file, field by field, and pieces of sound that lie across the end of its ring.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "plane/recording/recording_file.h"
#include "test/check.h"
#include "test/plane/recording_files.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

uint32_t little(const std::vector<uint8_t>& bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; i++) value |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

std::vector<uint8_t> header_of(const std::string& path) {
  std::vector<uint8_t> bytes(RecordingFile::header_bytes);
  const int fd = ::open(path.c_str(), O_RDONLY);
  const ssize_t count = ::read(fd, bytes.data(), bytes.size());
  ::close(fd);
  bytes.resize(count < 0 ? 0 : static_cast<size_t>(count));
  return bytes;
}

}  // namespace

TEST("the header of a recording says PCM, one channel, 16 bits and its rate, while it grows and when it is complete") {
  for (const uint32_t rate_hz : {8000u, 16'000u, 24'000u, 48'000u}) {
    Folder folder;
    const std::string path = folder.file("header.wav");
    RecordingFile file({path, ""}, rate_hz);
    const std::vector<int16_t> pcm(rate_hz / 50, 1000);
    CHECK(file.put(pcm.data(), pcm.size()));
    for (const bool is_complete : {false, true}) {
      if (is_complete) file.finish();
      CHECK(file.write() == !is_complete);
      const std::vector<uint8_t> header = header_of(path);
      CHECK(header.size() == RecordingFile::header_bytes);
      CHECK(std::memcmp(&header[0], "RIFF", 4) == 0 && std::memcmp(&header[8], "WAVEfmt ", 8) == 0);
      CHECK(std::memcmp(&header[36], "data", 4) == 0 && little(header, 16, 4) == 16);
      CHECK(little(header, 20, 2) == 1 && little(header, 22, 2) == 1);
      CHECK(little(header, 24, 4) == rate_hz && little(header, 28, 4) == rate_hz * 2);
      CHECK(little(header, 32, 2) == 2 && little(header, 34, 2) == 16);
      const uint32_t bytes = static_cast<uint32_t>(pcm.size() * 2);
      CHECK(little(header, 40, 4) == (is_complete ? bytes : 0xffffffff));
      CHECK(little(header, 4, 4) == (is_complete ? bytes + 36 : 0xffffffff));
    }
  }
}

TEST("sound in pieces of any length lies in its recording as it was put, also across the end of the ring") {
  Folder folder;
  const std::string path = folder.file("pieces.wav");
  const std::string ring = folder.file("pieces.ring");
  RecordingFile file({path, ring}, 8000);
  std::vector<int16_t> piece(150);
  int16_t next = 0;
  for (int i = 0; i < 700; i++) {
    for (int16_t& sample : piece) sample = next++;
    CHECK(file.put(piece.data(), piece.size()));
    if (i % 100 == 99) CHECK(file.write());
  }
  file.finish();
  CHECK(!file.write());
  const Wav wav = read_wav(path);
  CHECK(wav.whole && wav.samples.size() == 700 * 150);
  for (size_t i = 0; i < wav.samples.size(); i++) CHECK(wav.samples[i] == static_cast<int16_t>(i));
}
