// A WebSocket's end of a call: what is written to it is played out at real time, what is said goes out by the tick.
#include "plane/stream/stream_leg.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernel/codec/g711.h"
#include "test/check.h"

using namespace sidetone;

namespace {

struct Ear : Listener {
  std::vector<int16_t> pcm;
  void hear(const int16_t* samples, size_t count, uint32_t, bool) override {
    pcm.insert(pcm.end(), samples, samples + count);
  }
};

/** A frame that was given to script. */
struct Given {
  uint32_t leg;
  uint32_t passed;
  std::vector<uint8_t> bytes;
};

struct Stream {
  std::shared_ptr<StreamInbox> inbox = std::make_shared<StreamInbox>();
  StreamLeg leg;
  StreamFrames frames;
  Ear ear;
  Notices notices;
  Now now{1'000'000'000, 1'700'000'000'000'000};

  Stream(const StreamFormat& to, const StreamFormat& from) : leg(7, inbox, to, from) {
    leg.deliver(&frames);
    leg.listen(&ear);
  }

  void write(const std::vector<int16_t>& pcm, size_t from, size_t count) {
    (void)inbox->write(reinterpret_cast<const uint8_t*>(pcm.data() + from), count * 2, 1 << 20);
  }

  void tick(int count = 1) {
    for (int i = 0; i < count; i++) {
      leg.take(now, notices);
      leg.give(now, notices);
      now.us += 20'000;
      now.wall_us += 20'000;
    }
  }

  std::vector<Given> given() {
    std::vector<Given> all;
    for (size_t at = 0; at < frames.size();) {
      uint32_t header[3];
      std::memcpy(header, frames.data() + at, sizeof header);
      const uint8_t* bytes = frames.data() + at + sizeof header;
      all.push_back({header[0], header[1], {bytes, bytes + header[2]}});
      at += sizeof header + (header[2] + 3) / 4 * 4;
    }
    frames.clear();
    return all;
  }
};

constexpr StreamFormat pcm_8k{StreamEncoding::pcm, 8000}, pcm_16k{StreamEncoding::pcm, 16000};
constexpr StreamFormat mulaw_8k{StreamEncoding::mulaw, 8000};

int32_t largest_step(const std::vector<int16_t>& pcm, size_t from) {
  int32_t most = 0;
  for (size_t i = from + 1; i < pcm.size(); i++) most = std::max(most, std::abs(pcm[i] - pcm[i - 1]));
  return most;
}

}  // namespace

TEST("what a stream says is heard sample for sample, whatever the size of its pieces") {
  Stream stream(pcm_8k, pcm_8k);
  std::vector<int16_t> said(1600);
  for (size_t i = 0; i < said.size(); i++) said[i] = static_cast<int16_t>(i * 37 % 20'000 + 1);
  std::vector<uint8_t> bytes(said.size() * 2);
  std::memcpy(bytes.data(), said.data(), bytes.size());
  for (size_t at = 0, size = 1; at < bytes.size(); size = size * 7 % 501 + 1) {  // odd sizes among them
    const size_t part = std::min(size, bytes.size() - at);
    CHECK(stream.inbox->write(bytes.data() + at, part, bytes.size()));
    at += part;
  }
  CHECK(!stream.inbox->write(bytes.data(), 1, bytes.size()));  // it is full
  stream.tick(10);
  CHECK(stream.ear.pcm == said);
}

TEST("a stream that runs dry in the middle of a wave falls silent and goes on without a step, wherever that is") {
  const std::vector<int16_t> loud(800, 8000);
  for (size_t there = 160; there <= 320; there++) {
    for (const int away : {0, 1, 5}) {
      Stream stream(pcm_8k, pcm_8k);
      stream.write(loud, 0, there);
      stream.tick(2 + away);
      CHECK(stream.ear.pcm[0] == 8000 && stream.ear.pcm[there - 1] == 8000);
      if (away > 0) CHECK(stream.ear.pcm[there + 40] == 0 && stream.ear.pcm.back() == 0);
      stream.write(loud, 0, 480);
      stream.tick(3);
      CHECK(largest_step(stream.ear.pcm, 0) <= 8000 / 20);
      CHECK(std::count(stream.ear.pcm.end() - 455, stream.ear.pcm.end(), 8000) == 455);
    }
  }
}

TEST("a sound that follows one that was dropped goes on without a step, however soon") {
  for (const int away : {0, 1, 5}) {
    Stream stream(pcm_8k, pcm_8k);
    stream.write(std::vector<int16_t>(800, 8000), 0, 800);
    stream.tick(2);
    stream.inbox->clear();
    stream.tick(away);
    stream.write(std::vector<int16_t>(800, -8000), 0, 800);
    stream.tick(3);
    CHECK(largest_step(stream.ear.pcm, 0) <= 16'000 / 20);
    CHECK(std::count(stream.ear.pcm.begin(), stream.ear.pcm.end(), -8000) == 480 - 20);
  }
}

TEST("a sound that follows another after it was told as played out begins as it is") {
  Stream stream(pcm_8k, pcm_8k);
  const std::vector<int16_t> loud(320, 8000);
  for (int sound = 0; sound < 2; sound++) {
    stream.ear.pcm.clear();
    stream.write(loud, 0, 320);
    stream.tick(2);
    CHECK(stream.ear.pcm == loud);
    stream.tick(9);
    CHECK(stream.notices.empty());
    stream.tick(1);
    CHECK(stream.notices.size() == 1 && stream.notices[0].kind == NoticeKind::stream_played &&
          stream.notices[0].leg == 7 && stream.notices[0].a == 40);
    stream.notices.clear();
    stream.tick(30);
    CHECK(stream.notices.empty());
  }
}

TEST("a gap of less than 200 ms is told as one sound, without the gap") {
  Stream stream(pcm_8k, pcm_8k);
  const std::vector<int16_t> loud(320, 8000);
  stream.write(loud, 0, 160);
  stream.tick(10);
  stream.write(loud, 0, 160);
  stream.tick(10);
  CHECK(stream.notices.empty());
  stream.tick(1);
  CHECK(stream.notices.size() == 1 && stream.notices[0].a == 40);
}

TEST("a piece of a frame that begins a sound waits a tick for the rest of it, and no longer") {
  const std::vector<int16_t> loud(160, 8000);
  for (const bool rest : {true, false}) {
    Stream stream(pcm_8k, pcm_8k);
    stream.write(loud, 0, 100);
    stream.tick();
    CHECK(stream.ear.pcm == std::vector<int16_t>(160, 0));
    if (rest) stream.write(loud, 100, 60);
    stream.tick();
    CHECK(stream.ear.pcm[259] == 8000 && (stream.ear.pcm[319] == 8000) == rest);
  }
}

TEST("a stream that is paused is silent and loses nothing") {
  Stream stream(pcm_8k, pcm_8k);
  const std::vector<int16_t> said(480, 1234);
  stream.write(said, 0, 480);
  stream.inbox->pause(true);
  stream.tick(20);
  CHECK(stream.ear.pcm == std::vector<int16_t>(20 * 160, 0) && stream.notices.empty() && stream.inbox->passed() == 0);
  stream.inbox->pause(false);
  stream.ear.pcm.clear();
  stream.tick(3);
  CHECK(stream.ear.pcm == said && stream.inbox->passed() == 960);
}

TEST("script is given a frame every tick, with what has been played of its own until then") {
  Stream stream(mulaw_8k, pcm_16k);
  CHECK(stream.leg.rate_hz() == 16000);
  const std::vector<uint8_t> said(400, 0x2a);
  CHECK(stream.inbox->write(said.data(), said.size(), 1000));
  stream.tick(3);
  auto given = stream.given();
  CHECK(given.size() == 3);
  for (size_t i = 0; i < 3; i++) {
    CHECK(given[i].leg == 7 && given[i].passed == std::min<size_t>(160 * (i + 1), 400));
    CHECK(given[i].bytes == std::vector<uint8_t>(640, 0));
  }
  CHECK(stream.ear.pcm.size() == 3 * 320);
  int16_t level = 0;
  mulaw_decode(said.data(), &level, 1);
  CHECK(std::abs(stream.ear.pcm[400] - level) < std::abs(level) / 50);  // at the rate of the leg

  Stream narrow(pcm_16k, mulaw_8k);
  narrow.tick();
  given = narrow.given();
  CHECK(given.size() == 1 && given[0].bytes == std::vector<uint8_t>(160, 0xff));
}

TEST("frames that script does not fetch are lost beyond eight megabytes") {
  Stream stream(pcm_8k, {StreamEncoding::pcm, 48000});
  stream.tick(5000);
  CHECK(stream.frames.size() >= StreamLeg::frames_max_bytes &&
        stream.frames.size() < StreamLeg::frames_max_bytes + 2000);
}

TEST("what follows the first milliseconds after a gap is heard sample for sample") {
  Stream stream(pcm_8k, pcm_8k);
  std::vector<int16_t> said(800);
  for (size_t i = 0; i < said.size(); i++) said[i] = static_cast<int16_t>(i * 37 % 20'000 + 1);
  stream.write(said, 0, 160);
  stream.tick(3);
  stream.ear.pcm.clear();
  stream.write(said, 160, 640);
  stream.tick(4);
  CHECK(std::equal(stream.ear.pcm.begin() + 20, stream.ear.pcm.end(), said.begin() + 180));
  CHECK(stream.ear.pcm[0] < said[160] / 10);
}

TEST("script is given what is played to its stream, at its own rate and encoding") {
  std::vector<int16_t> played(320);
  for (size_t i = 0; i < played.size(); i++) played[i] = static_cast<int16_t>(i * 50);
  std::vector<uint8_t> octets(320);
  mulaw_encode(played.data(), octets.data(), 320);
  std::vector<uint8_t> bytes(640);
  std::memcpy(bytes.data(), played.data(), 640);
  for (const StreamFormat& from : {pcm_8k, mulaw_8k}) {
    Stream stream(pcm_8k, from);
    stream.leg.player().play(1, 8000, 100);
    CHECK(stream.leg.player().feed(1, played.data(), 320));
    stream.tick(2);
    std::vector<uint8_t> all;
    for (const Given& given : stream.given()) all.insert(all.end(), given.bytes.begin(), given.bytes.end());
    CHECK(all == (from.encoding == StreamEncoding::mulaw ? octets : bytes));
  }
  Stream narrow(pcm_16k, pcm_8k);  // a leg of 16 kHz
  const std::vector<int16_t> level(1600, 5000);
  narrow.leg.player().play(1, 16000, 100);
  CHECK(narrow.leg.player().feed(1, level.data(), level.size()));
  narrow.tick(4);
  const auto given = narrow.given();
  CHECK(given.size() == 4 && given[3].bytes.size() == 320);
  const int heard = static_cast<int16_t>(given[3].bytes[300] | given[3].bytes[301] << 8);
  CHECK(std::abs(heard - 5000) < 50);
}
