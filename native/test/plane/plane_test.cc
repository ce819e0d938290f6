#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "plane/plane.h"
#include "test/check.h"
#include "test/plane/loopback.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

constexpr int64_t tick = Plane::tick_us;

struct Bench {
  std::unique_ptr<Plane> plane;
  Address rtp;
  UdpSocket peer;
  Now now{1'000'000'000, 1'700'000'000'000'000};

  bool open(uint32_t id = 1) {
    int error = 0;
    if (!plane) plane = Plane::create(1'000'000, error);
    for (uint16_t port = first_port; plane && port < last_port; port += 2) {
      rtp = own(port);
      if (plane->open(id, rtp, own(static_cast<uint16_t>(port + 1))) == 0) return true;
    }
    return false;
  }

  Negotiated agreed(Codec codec = Codec::pcmu) const {
    Negotiated agreed;
    agreed.rtp = peer.here();
    agreed.rtcp = nowhere();
    agreed.codec = codec;
    agreed.payload_type = codec == Codec::pcmu ? 0 : codec == Codec::pcma ? 8 : 9;
    agreed.event_payload_type = 101;
    return agreed;
  }

  void run(int ticks) {
    for (int i = 0; i < ticks; i++) {
      plane->tick(now);
      now.us += tick;
      now.wall_us += tick;
    }
  }

  std::vector<Notice> notices() const {
    std::vector<Notice> all(100);
    all.resize(plane->take_notices(all.data(), all.size()));
    return all;
  }
};

uint32_t be32(const std::vector<uint8_t>& bytes, size_t at) {
  return static_cast<uint32_t>(bytes[at]) << 24 | static_cast<uint32_t>(bytes[at + 1]) << 16 |
         static_cast<uint32_t>(bytes[at + 2]) << 8 | bytes[at + 3];
}

std::vector<uint8_t> packet(uint8_t type, uint16_t sequence, uint32_t timestamp, size_t count, uint8_t fill) {
  std::vector<uint8_t> bytes(12 + count, fill);
  rtp_write_header(bytes.data(), false, type, sequence, timestamp, 77);
  return bytes;
}

struct Ear : Listener {
  std::vector<int16_t> pcm;
  void hear(const int16_t* samples, size_t count, uint32_t, bool) override {
    pcm.insert(pcm.end(), samples, samples + count);
  }
};

}  // namespace

TEST("every packet time from 10 to 60 ms gives contiguous packets of that length") {
  for (const uint32_t ptime : {10u, 20u, 30u, 40u, 60u}) {
    Bench bench;
    CHECK(bench.open());
    Negotiated agreed = bench.agreed();
    agreed.ptime_ms = ptime;
    bench.plane->negotiate(1, agreed, bench.now);
    bench.run(12);
    const auto sent = bench.peer.receive();
    CHECK(sent.size() == 240 / ptime);
    for (size_t i = 0; i < sent.size(); i++) {
      CHECK(sent[i].size() == 12 + ptime * 8);
      CHECK((sent[i][1] & 0x80) == (i == 0 ? 0x80 : 0));
      if (i > 0) CHECK(be32(sent[i], 4) - be32(sent[i - 1], 4) == ptime * 8);
    }
  }
}

TEST("a playback ends after its last sample was sent, and underruns are silence within it") {
  Bench bench;
  CHECK(bench.open());
  bench.plane->negotiate(1, bench.agreed(), bench.now);
  CHECK(bench.plane->play(1, 7, 8000, 100));
  const std::vector<int16_t> pcm(400, 1000);
  CHECK(bench.plane->feed(1, 7, pcm.data(), pcm.size()));
  CHECK(!bench.plane->feed(1, 8, pcm.data(), pcm.size()));
  bench.run(5);
  auto told = bench.notices();
  CHECK(told.size() >= 1 && told[0].kind == NoticeKind::playback_started && told[0].a == 7);
  CHECK(told.back().kind == NoticeKind::playback_hungry && told.back().more[0] == 400);
  CHECK(bench.plane->feed(1, 7, pcm.data(), 160));
  CHECK(bench.plane->finish(1, 7));
  CHECK(!bench.plane->feed(1, 7, pcm.data(), 160));
  bench.run(1);
  told = bench.notices();
  CHECK(told.size() == 1 && told[0].kind == NoticeKind::playback_ended && told[0].a == 7);
  const auto sent = bench.peer.receive();
  CHECK(sent.size() == 6);
  // The last sample before the hole falls over 5 ms, and what comes after it rises.
  CHECK(sent[2][12 + 79] != 0xff && sent[2][12 + 110] != 0xff && sent[2][12 + 120] == 0xff && sent[3][12] == 0xff);
  CHECK(sent[5][12 + 10] != 0xff && sent[5][12 + 10] != sent[5][12 + 40] && sent[5][12 + 40] == sent[2][12 + 79]);
  CHECK((sent[5][1] & 0x80) != 0);
  const std::vector<int16_t> flood(8000 * 5 + 1);
  CHECK(bench.plane->play(1, 9, 8000, 100));
  CHECK(!bench.plane->feed(1, 9, flood.data(), flood.size()));
}

TEST("a new playback ends the old one as stopped, and closing the leg ends the new one so") {
  Bench bench;
  CHECK(bench.open());
  CHECK(bench.plane->play(1, 7, 8000, 100));
  CHECK(bench.plane->play(1, 8, 8000, 100));
  CHECK(!bench.plane->stop(1, 7));
  Counters counters;
  CHECK(bench.plane->close(1, counters, bench.now));
  CHECK(!bench.plane->close(1, counters, bench.now));
  const auto told = bench.notices();
  CHECK(told.size() == 2 && told[0].a == 7 && told[1].a == 8);
  for (const Notice& notice : told) CHECK(notice.kind == NoticeKind::playback_stopped);
}

TEST("a listener hears what was sent; without one nothing is decoded and everything is counted") {
  Bench bench;
  CHECK(bench.open());
  bench.plane->negotiate(1, bench.agreed(), bench.now);
  Ear ear;
  bench.plane->leg(1)->listen(&ear);
  for (uint16_t i = 0; i < 50; i++) {
    bench.peer.send(bench.rtp, packet(0, i, i * 160u, 160, 0x8f));
    bench.run(1);
  }
  size_t loud = 0;
  for (const int16_t sample : ear.pcm) loud += sample > 10000;
  CHECK(ear.pcm.size() == 50 * 160 && loud > 45 * 160);
  bench.plane->leg(1)->listen(nullptr);
  for (uint16_t i = 50; i < 60; i++) {
    if (i != 55) bench.peer.send(bench.rtp, packet(0, i, i * 160u, 160, 0x8f));
    bench.run(1);
  }
  CHECK(ear.pcm.size() == 50 * 160);
  Counters counters;
  CHECK(bench.plane->counters(1, counters));
  CHECK(counters.received == 59 && counters.lost == 1 && counters.sent == 60);
}

TEST("G722 legs play 16 kHz, and a playback outlives a change of codec") {
  Bench bench;
  CHECK(bench.open());
  bench.plane->negotiate(1, bench.agreed(Codec::g722), bench.now);
  CHECK(bench.plane->play(1, 7, 16000, 100));
  std::vector<int16_t> pcm(16000);
  for (size_t i = 0; i < pcm.size(); i++) pcm[i] = static_cast<int16_t>(i % 32 < 16 ? 8000 : -8000);
  CHECK(bench.plane->feed(1, 7, pcm.data(), pcm.size()));
  CHECK(bench.plane->finish(1, 7));
  bench.run(25);
  bench.plane->negotiate(1, bench.agreed(Codec::pcma), bench.now);
  bench.run(30);
  const auto sent = bench.peer.receive();
  CHECK(sent.size() == 55);
  for (size_t i = 0; i < sent.size(); i++) {
    CHECK(sent[i].size() == 172);
    CHECK((sent[i][1] & 0x7f) == (i < 25 ? 9 : 8));
    if (i > 0) CHECK(be32(sent[i], 4) - be32(sent[i - 1], 4) == 160);
  }
  bool ended = false;
  for (const Notice& notice : bench.notices()) ended = ended || notice.kind == NoticeKind::playback_ended;
  CHECK(ended);
}

TEST("the media timeout is told once for each silence, and not while nothing is expected") {
  Bench bench;
  CHECK(bench.open());
  Negotiated agreed = bench.agreed();
  agreed.receive = false;
  bench.plane->negotiate(1, agreed, bench.now);
  bench.run(100);
  CHECK(bench.notices().empty());
  agreed.receive = true;
  bench.plane->negotiate(1, agreed, bench.now);
  bench.run(49);
  CHECK(bench.notices().empty());
  bench.run(100);
  auto told = bench.notices();
  CHECK(told.size() == 1 && told[0].kind == NoticeKind::media_timeout);
  bench.peer.send(bench.rtp, packet(0, 1, 160, 160, 0xff));
  bench.run(49);
  told = bench.notices();
  CHECK(told.size() == 1 && told[0].kind == NoticeKind::media_started);
  bench.run(3);
  told = bench.notices();
  CHECK(told.size() == 1 && told[0].kind == NoticeKind::media_timeout);
}

TEST("a silence before the answer is not told, and one that goes on is told a media timeout after the answer") {
  Bench bench;
  CHECK(bench.open());
  Negotiated agreed = bench.agreed();
  agreed.ringing = true;
  bench.plane->negotiate(1, agreed, bench.now);
  bench.run(130);
  CHECK(bench.notices().empty());
  agreed.ringing = false;
  bench.plane->negotiate(1, agreed, bench.now);
  bench.run(49);
  CHECK(bench.notices().empty());
  bench.run(3);
  const auto told = bench.notices();
  CHECK(told.size() == 1 && told[0].kind == NoticeKind::media_timeout);
}

TEST("held, a leg sends nothing and its timestamps run on") {
  Bench bench;
  CHECK(bench.open());
  Negotiated agreed = bench.agreed();
  bench.plane->negotiate(1, agreed, bench.now);
  bench.run(2);
  agreed.send = false;
  bench.plane->negotiate(1, agreed, bench.now);
  bench.run(10);
  agreed.send = true;
  bench.plane->negotiate(1, agreed, bench.now);
  bench.run(2);
  const auto sent = bench.peer.receive();
  CHECK(sent.size() == 4);
  CHECK(be32(sent[2], 4) - be32(sent[1], 4) == 11 * 160);
  CHECK(static_cast<uint16_t>(sent[2][3] - sent[1][3]) % 256 == 1);
  CHECK((sent[2][1] & 0x80) != 0);
}

TEST("a source that changes its SSRC is heard from its second packet on, and totals go on") {
  Bench bench;
  CHECK(bench.open());
  bench.plane->negotiate(1, bench.agreed(), bench.now);
  for (uint16_t i = 0; i < 10; i++) bench.peer.send(bench.rtp, packet(0, i, i * 160u, 160, 0xff));
  bench.run(1);
  for (uint16_t i = 500; i < 510; i++) {
    auto bytes = packet(0, i, i * 160u, 160, 0xff);
    bytes[11] = 99;
    bench.peer.send(bench.rtp, bytes);
  }
  bench.run(1);
  Counters counters;
  CHECK(bench.plane->counters(1, counters));
  CHECK(counters.received == 19 && counters.lost == 0);
}

TEST(
    "reports come at random around 5 s, answer the far end's sender reports, and share the RTP port where that was "
    "agreed") {
  Bench bench;
  CHECK(bench.open());
  Negotiated agreed = bench.agreed();
  agreed.rtcp = bench.peer.here();
  bench.plane->negotiate(1, agreed, bench.now);
  std::vector<int> at;
  SenderInfo theirs;
  theirs.ntp = 0x1111222233334444;
  uint8_t report[rtcp_max_bytes];
  const size_t length = rtcp_write(report, 77, &theirs, nullptr, "far", false);
  uint32_t last_sr = 0;
  uint32_t since = 0;
  for (int tick = 0; tick < 3000; tick++) {
    bench.peer.send(bench.rtp, packet(0, static_cast<uint16_t>(tick), static_cast<uint32_t>(tick) * 160, 160, 0xff));
    if (tick == 2000) bench.peer.send(bench.rtp, std::vector<uint8_t>(report, report + length));
    bench.run(1);
    for (const auto& bytes : bench.peer.receive()) {
      RtcpHeard heard;
      if (!rtp_is_rtcp(bytes.data(), bytes.size())) continue;
      CHECK(rtcp_parse(bytes.data(), bytes.size(), 77, heard) && heard.sender_report && heard.about_us &&
            heard.block.lost == 0);
      at.push_back(tick);
      if (last_sr == 0 && heard.block.last_sr != 0) {
        last_sr = heard.block.last_sr;
        since = heard.block.delay_since_sr / 65536;
        CHECK(last_sr == 0x22223333 && tick >= 2000 && since == static_cast<uint32_t>(tick - 2000) / 50);
      }
    }
  }
  CHECK(last_sr != 0);
  CHECK(at.size() >= 9 && at.size() <= 26 && at[0] < 160);
  for (size_t i = 1; i < at.size(); i++) CHECK(at[i] - at[i - 1] >= 100 && at[i] - at[i - 1] <= 320);
}

TEST("reports go to where those of the far end come from, where a NAT gave its audio another address") {
  Bench bench;
  CHECK(bench.open());
  UdpSocket written;   // what SDP says
  UdpSocket reporter;  // what the NAT makes of the port of RTCP
  Negotiated agreed = bench.agreed();
  agreed.rtp = nowhere();
  agreed.rtcp = written.here();
  AddressRange here;
  CHECK(here.parse("127.0.0.0/8"));
  agreed.learn_from = {here};
  bench.plane->negotiate(1, agreed, bench.now);
  const Address rtcp = own(static_cast<uint16_t>(bench.rtp.port() + 1));
  uint8_t report[rtcp_max_bytes];
  const auto reported = [&](uint32_t ssrc) {
    const size_t length = rtcp_write(report, ssrc, nullptr, nullptr, "far", false);
    reporter.send(rtcp, std::vector<uint8_t>(report, report + length));
  };
  const auto reports = [&](int from, int until) {
    for (int tick = from; tick < until; tick++) {
      bench.peer.send(bench.rtp, packet(0, static_cast<uint16_t>(tick), static_cast<uint32_t>(tick) * 160, 160, 0xff));
      bench.run(1);
    }
    (void)bench.peer.receive();
    const size_t moved = reporter.receive().size();
    return std::pair<size_t, size_t>(written.receive().size(), moved);
  };
  auto [as_written, moved] = reports(0, 1000);
  CHECK(as_written > 0 && moved == 0);
  reported(78);  // somebody else's
  std::tie(as_written, moved) = reports(1000, 2000);
  CHECK(as_written > 0 && moved == 0);
  reported(77);
  std::tie(as_written, moved) = reports(2000, 3000);
  CHECK(as_written == 0 && moved > 0);
  // The far end says where it is now: what it writes counts again.
  agreed.rtp = bench.peer.here();
  bench.plane->negotiate(1, agreed, bench.now);
  std::tie(as_written, moved) = reports(3000, 4000);
  CHECK(as_written > 0 && moved == 0);
}

TEST("a leg counts what came and what did not, and knows delay, round trip and how good that is") {
  Bench bench;
  CHECK(bench.open());
  Negotiated agreed = bench.agreed();
  agreed.rtcp = bench.peer.here();
  bench.now = now_of_system();
  bench.plane->negotiate(1, agreed, bench.now);
  Ear ear;
  bench.plane->leg(1)->listen(&ear);
  Counters counters;
  CHECK(bench.plane->counters(1, counters) && counters.mos_milli == 0 && counters.round_trip_us == 0 &&
        counters.delay_us == 0);
  const auto say = [&](int from, int until, int lost_every) {
    for (int tick = from; tick < until; tick++) {
      // Behind the kernel's stamps: as if the answers to its reports had been under way for so long.
      bench.now.wall_us = now_of_system().wall_us - 150'000;
      if (tick % lost_every != 0)
        bench.peer.send(bench.rtp,
                        packet(0, static_cast<uint16_t>(tick), static_cast<uint32_t>(tick) * 160, 160, 0x55));
      bench.run(1);
      for (const auto& bytes : bench.peer.receive()) {
        RtcpHeard heard;
        if (!rtp_is_rtcp(bytes.data(), bytes.size()) || !rtcp_parse(bytes.data(), bytes.size(), 77, heard) ||
            !heard.sender_report)
          continue;
        ReportBlock block;
        block.last_sr = static_cast<uint32_t>(be32(bytes, 8) << 16 | be32(bytes, 12) >> 16);
        block.ssrc = be32(bytes, 4);
        uint8_t answer[rtcp_max_bytes];
        const size_t length = rtcp_write(answer, 77, nullptr, &block, "far", false);
        bench.peer.send(bench.rtp, std::vector<uint8_t>(answer, answer + length));
      }
    }
  };
  say(1, 201, 1'000);
  CHECK(bench.plane->counters(1, counters));
  CHECK(counters.received == 200 && counters.lost == 0 && counters.late == 0);
  CHECK(counters.delay_us >= 20'000 && counters.delay_us <= 60'000);
  CHECK(counters.round_trip_us >= 149'000 && counters.round_trip_us < 2'000'000);
  const uint32_t clean = counters.mos_milli;
  CHECK(clean > 3500 && clean < 4400);
  say(201, 401, 5);
  CHECK(bench.plane->counters(1, counters));
  CHECK(counters.received == 360 && counters.lost >= 39);
  CHECK(counters.mos_milli >= 1000 && counters.mos_milli + 500 < clean);
}

TEST("a stall of 200 ms is caught up at once; a stall beyond half a second is jumped over") {
  Bench bench;
  CHECK(bench.open());
  bench.plane->negotiate(1, bench.agreed(), bench.now);
  (void)bench.plane->run();
  ::usleep(200'000);
  uint32_t ticks = 0;
  const TickReport late = bench.plane->run();
  CHECK(late.ticks >= 9 && late.ticks <= 25 && late.skipped == 0 && late.lateness_us >= 170'000);
  ticks += late.ticks;
  const auto burst = bench.peer.receive();
  CHECK(burst.size() >= ticks);
  ::usleep(700'000);
  const TickReport later = bench.plane->run();
  CHECK(later.skipped >= 30 && later.ticks == 1);
  const auto after = bench.peer.receive();
  CHECK(after.size() == 1 && (after[0][1] & 0x80) != 0);
  CHECK(be32(after[0], 4) - be32(burst.back(), 4) == 160 * (later.skipped + 1));
}

TEST("ticks with nothing to tell are run some at a time, and one that is late is told by itself") {
  Bench bench;
  CHECK(bench.open());
  bench.plane->negotiate(1, bench.agreed(), now_of_system());
  for (int turn = 0; turn < 6; turn++) {
    const TickReport report = bench.plane->run();
    const bool told = !bench.notices().empty();
    CHECK(report.ticks <= Plane::quiet_ticks || report.lateness_us >= Plane::tick_us);
    CHECK(report.ticks == Plane::quiet_ticks || report.lateness_us > Plane::on_time_us || told);
  }
}

TEST("a wake ends the sleep before the tick is due") {
  int error = 0;
  const auto plane = Plane::create(1'000'000, error);
  CHECK(plane != nullptr);
  (void)plane->run();
  const uint64_t one = 1;
  CHECK(::write(plane->wake_fd(), &one, sizeof one) == sizeof one);
  const TickReport report = plane->run();
  CHECK(report.ticks == 0);
}

TEST("a plane that has ended is woken no more") {
  int error = 0;
  auto plane = Plane::create(1'000'000, error);
  CHECK(plane != nullptr);
  const std::shared_ptr<Handover> box = Handover::find(plane->number());
  CHECK(box != nullptr && box->wake());
  (void)plane->run();
  plane.reset();
  CHECK(!box->wake());
}

TEST("ports that are taken are told, and leave nothing open") {
  Bench bench;
  CHECK(bench.open(1));
  const Address rtcp = own(static_cast<uint16_t>(bench.rtp.port() + 1));
  const int before = ::open("/dev/null", O_RDONLY);
  ::close(before);
  CHECK(bench.plane->open(2, bench.rtp, rtcp) == EADDRINUSE);
  CHECK(bench.plane->open(1, bench.rtp, rtcp) == EEXIST);
  const int after = ::open("/dev/null", O_RDONLY);
  ::close(after);
  CHECK(after == before);
}

TEST("a plane without legs wakes twice a second, and one that gets a leg ticks on without a jump") {
  Bench bench;
  int error = 0;
  bench.plane = Plane::create(1'000'000, error);
  const int64_t began = now_of_system().us;
  constexpr int64_t watched_us = 1'000'000;
  int64_t woken = 0;
  while (now_of_system().us < began + watched_us) {
    CHECK(bench.plane->run().ticks <= 1);
    woken++;
  }
  CHECK(woken <= (now_of_system().us - began) / Plane::rest_us + 1);
  CHECK(bench.open());
  TickReport report;
  do report = bench.plane->run();
  while (report.ticks == 0);
  CHECK(report.skipped == 0);
}
