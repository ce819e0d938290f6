// What the reports of a leg say, and what it takes from those of the far end (RFC 3550 §6.4).
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "plane/rtp/rtcp_session.h"
#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

constexpr int64_t second = 1'000'000;
constexpr uint32_t ours = 42, theirs = 77;
constexpr Now start{1'000 * second, 1'700'000'000 * second};

Now after(int64_t us) { return {start.us + us, start.wall_us + us}; }

/** The middle 32 bits of the NTP time of an instant, in 1/65536 s. */
uint32_t middle_ntp(int64_t us) {
  const int64_t since_1900_us = after(us).wall_us % (65536 * second) + 2'208'988'800 % 65536 * second;
  return static_cast<uint32_t>(since_1900_us / 1000 * 65536 / 1000);
}

/** The far end's stream, and the session that reports on it. */
struct Reporter {
  RtcpSession session{0x0123456789abcdef, 5};
  RtpSource source;

  void hear(uint16_t sequence, uint32_t timestamp, int64_t arrival_units) {
    RtpPacket packet;
    packet.ssrc = theirs;
    packet.sequence = sequence;
    packet.timestamp = timestamp;
    (void)source.judge(packet);
    if (source.now().sequence(sequence, timestamp) == Reception::Verdict::accepted)
      source.now().arrival(timestamp, arrival_units);
  }

  bool take(uint32_t from, const SenderInfo* sender, const ReportBlock* block, int64_t at_us) {
    uint8_t bytes[rtcp_max_bytes];
    const size_t count = rtcp_write(bytes, from, sender, block, "far", false);
    return session.take(bytes, count, ours, source, after(at_us));
  }

  /** The block of a report that is written now, as the far end reads it. */
  ReportBlock write(int64_t at_us) {
    uint8_t bytes[rtcp_max_bytes];
    const size_t count = session.write(bytes, ours, {}, source, after(at_us), false);
    RtcpHeard heard;
    return rtcp_parse(bytes, count, theirs, heard) && heard.about_us ? heard.block : ReportBlock{};
  }
};

}  // namespace

TEST("a compound is laid out as RFC 3550 says: report, CNAME and BYE, each with its length") {
  SenderInfo sender;
  sender.ntp = 0x0102030405060708;
  sender.timestamp = 0x11121314;
  sender.packets = 0x21222324;
  sender.octets = 0x31323334;
  ReportBlock block;
  block.ssrc = 0x41424344;
  block.fraction_lost = 0x51;
  block.lost = -2;
  block.highest = 0x61626364;
  block.jitter = 0x71727374;
  block.last_sr = 0x81828384;
  block.delay_since_sr = 0x91929394;
  const std::vector<uint8_t> whole = {0x81, 200,  0,    12,   1,    2,    3,    4,    1,    2,    3,
                                      4,    5,    6,    7,    8,    0x11, 0x12, 0x13, 0x14, 0x21, 0x22,
                                      0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 0x51,
                                      0xff, 0xff, 0xfe, 0x61, 0x62, 0x63, 0x64, 0x71, 0x72, 0x73, 0x74,
                                      0x81, 0x82, 0x83, 0x84, 0x91, 0x92, 0x93, 0x94,  // the sender report
                                      0x81, 202,  0,    3,    1,    2,    3,    4,    1,    4,    'n',
                                      'a',  'm',  'e',  0,    0,  // the source description
                                      0x81, 203,  0,    1,    1,    2,    3,    4};
  uint8_t bytes[rtcp_max_bytes];
  const size_t count = rtcp_write(bytes, 0x01020304, &sender, &block, "name", true);
  CHECK(std::vector<uint8_t>(bytes, bytes + count) == whole);
  // A list of items that ends with a word has a word of zeros behind it, and a long name is cut.
  const std::vector<uint8_t> receiver = {0x80, 201, 0, 1, 1, 2, 3,   4,   0x81, 202, 0, 3,
                                         1,    2,   3, 4, 1, 2, 'a', 'b', 0,    0,   0, 0};
  const size_t fewer = rtcp_write(bytes, 0x01020304, nullptr, nullptr, "ab", false);
  CHECK(std::vector<uint8_t>(bytes, bytes + fewer) == receiver);
  const char* const name = "0123456789012345678901234567890123456789longer";
  CHECK(rtcp_write(bytes, 1, &sender, &block, name, true) <= rtcp_max_bytes);
  CHECK(bytes[52 + 9] == 40 && std::memcmp(bytes + 52 + 10, name, 40) == 0 && bytes[52 + 50] == 0);
}

TEST("the loss of a report stays within its 24 bits, either way") {
  for (const int32_t lost : {0x7fffff, -0x800000, 0x800000, -0x800001, 0x7fffffff, -0x7fffffff}) {
    ReportBlock block;
    block.ssrc = ours;
    block.lost = lost;
    uint8_t bytes[rtcp_max_bytes];
    const size_t count = rtcp_write(bytes, theirs, nullptr, &block, "far", false);
    RtcpHeard heard;
    CHECK(rtcp_parse(bytes, count, ours, heard) && heard.block.lost == (lost > 0 ? 0x7fffff : -0x800000));
  }
}

TEST("what is no whole compound is not believed: its first part, lengths, padding and versions") {
  ReportBlock block;
  block.ssrc = ours;
  uint8_t bytes[rtcp_max_bytes];
  const size_t count = rtcp_write(bytes, theirs, nullptr, &block, "far", true);
  const std::vector<uint8_t> good(bytes, bytes + count);
  const auto believed = [](const std::vector<uint8_t>& all) {
    RtcpHeard heard;
    const bool read = rtcp_parse(all.data(), all.size(), ours, heard);
    return read && heard.about_us;
  };
  CHECK(believed(good));
  const size_t description = 32, farewell = count - 8;
  const auto changed = [&](size_t at, uint8_t to) {
    std::vector<uint8_t> all = good;
    all[at] = to;
    return believed(all);
  };
  CHECK(!changed(1, 202) && !changed(1, 203));  // a compound begins with a report
  CHECK(!changed(0, 0xa1) && changed(farewell, 0xa1));
  CHECK(!changed(0, 0x82));  // two blocks, of which one is there
  CHECK(!changed(0, 0x41) && !changed(description, 0x41) && !changed(farewell, 1));  // version 2 throughout
  CHECK(!changed(farewell + 3, 2) && !changed(farewell + 3, 0));                     // beyond the end, or no source
  CHECK(!believed({good.begin(), good.end() - 4}) && !believed({good.begin(), good.end() - 1}));
  RtcpHeard heard;
  CHECK(rtcp_parse(bytes, count, theirs, heard) && !heard.about_us && heard.bye);
}

TEST("a report says what was lost since the one before it and in all, the highest number, and the jitter") {
  Reporter reporter;
  CHECK(reporter.write(0).ssrc == 0);  // nobody was heard yet
  uint32_t timestamp = 0;
  const auto hear = [&](uint16_t sequence, int64_t late) {
    timestamp += 160;
    reporter.hear(sequence, timestamp, 1'000'000 + timestamp + late);
  };
  for (uint16_t i = 0; i < 4; i++) hear(static_cast<uint16_t>(65'534 + i), 0);
  ReportBlock block = reporter.write(second);
  CHECK(block.ssrc == theirs && block.fraction_lost == 0 && block.lost == 0 && block.highest == 0x10001);
  CHECK(block.jitter == 0 && block.last_sr == 0 && block.delay_since_sr == 0);
  for (const uint16_t i : {2, 4, 5, 7}) hear(i, 0);  // two of six are lost
  block = reporter.write(2 * second);
  CHECK(block.fraction_lost == 2 * 256 / 6 && block.lost == 2 && block.highest == 0x10007);
  for (const uint16_t i : {8, 10, 11, 12}) hear(i, 0);  // one of five
  block = reporter.write(3 * second);
  CHECK(block.fraction_lost == 256 / 5 && block.lost == 3);
  for (uint16_t i = 0; i < 4; i++) hear(static_cast<uint16_t>(13 + i), 0);
  CHECK(reporter.write(4 * second).fraction_lost == 0 && reporter.write(5 * second).fraction_lost == 0);
  hear(17, 160);
  CHECK(reporter.write(6 * second).jitter == 10);  // a sixteenth of 20 ms
  hear(18, 160);
  CHECK(reporter.write(7 * second).jitter == 9);
}

TEST("a report is a receiver's while nothing was sent, has a block once anybody was heard, and names its sender") {
  Reporter reporter;
  const char name[] = "0123456789abcdef";
  for (const bool heard : {false, true}) {
    if (heard) reporter.hear(1, 160, 160);
    for (const uint32_t packets : {0u, 1u}) {
      SenderInfo sent;
      sent.packets = packets;
      uint8_t bytes[rtcp_max_bytes];
      const size_t count = reporter.session.write(bytes, ours, sent, reporter.source, after(0), false);
      CHECK(bytes[0] == (heard ? 0x81 : 0x80) && bytes[1] == (packets > 0 ? 200 : 201));
      CHECK(std::search(bytes, bytes + count, name, name + 16) != bytes + count);
    }
  }
}

TEST("a sender report is answered with its time and the delay since, if it is of the source that is heard") {
  Reporter reporter;
  reporter.hear(1, 160, 160);
  SenderInfo sender;
  sender.ntp = 0x1111222233334444;
  CHECK(!reporter.take(theirs + 1, &sender, nullptr, 0));  // somebody else's
  CHECK(reporter.write(second).last_sr == 0);
  CHECK(reporter.take(theirs, &sender, nullptr, second));
  CHECK(reporter.take(theirs, nullptr, nullptr, 2 * second));  // no sender report
  const ReportBlock block = reporter.write(second * 7 / 2);
  CHECK(block.last_sr == 0x22223333 && block.delay_since_sr == 65536 * 5 / 2);
  reporter.session.forget_sender();
  CHECK(reporter.write(4 * second).last_sr == 0 && reporter.write(4 * second).delay_since_sr == 0);
}

TEST("the round trip is what passed since our report, less what the far end held it for") {
  Reporter reporter;
  reporter.hear(1, 160, 160);
  const auto answer = [&](uint32_t about, uint32_t sent, int64_t held_us, int64_t at_us) {
    ReportBlock block;
    block.ssrc = about;
    block.last_sr = sent;
    block.delay_since_sr = static_cast<uint32_t>(held_us * 65536 / second);
    (void)reporter.take(theirs, nullptr, &block, at_us);
    return reporter.session.round_trip_us();
  };
  const auto about = [](uint32_t us, int64_t wanted) { return us + 100 > wanted && us < wanted + 100; };
  CHECK(answer(ours, 0, second, 2 * second) == 0);             // it has none of our reports yet
  CHECK(answer(ours + 1, middle_ntp(0), 0, 2 * second) == 0);  // about somebody else
  CHECK(about(answer(ours, middle_ntp(0), 2 * second, 2 * second + 120'000), 120'000));
  CHECK(about(answer(ours, middle_ntp(second), second, second * 5 / 2), 500'000));
  // More than it can have held, or ten seconds of round trip, is nonsense, and what was known stays.
  CHECK(about(answer(ours, middle_ntp(0), 3 * second, 2 * second), 500'000));
  CHECK(about(answer(ours, middle_ntp(0), 0, 11 * second), 500'000));
}

TEST("a leg's reports count the packets and octets that it sent, at the time of its next sample") {
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  UdpSocket reports;
  Negotiated agreed;
  agreed.rtp = far->here();
  agreed.rtcp = reports.here();
  CHECK(bench.plane->negotiate(1, agreed, bench.now));
  uint32_t sent = 0;
  uint32_t next = 0;
  size_t looked_at = 0;
  for (int tick = 0; tick < 1500; tick++) {
    const Now now = bench.now;
    bench.tick();
    for (const auto& packet : far->packets()) {
      RtpPacket read;
      CHECK(rtp_parse(packet.data(), packet.size(), read));
      sent++;
      next = read.timestamp + 160;
    }
    for (const auto& bytes : reports.receive()) {
      const auto be32 = [&](size_t at) {
        return static_cast<uint32_t>(bytes[at]) << 24 | static_cast<uint32_t>(bytes[at + 1]) << 16 |
               static_cast<uint32_t>(bytes[at + 2]) << 8 | bytes[at + 3];
      };
      CHECK(bytes[1] == 200 && be32(16) == next && be32(20) == sent && be32(24) == sent * 160);
      CHECK(be32(8) == static_cast<uint32_t>(now.wall_us / second + 2'208'988'800));
      CHECK((be32(12) + uint64_t{5000}) * 1000 >> 32 == static_cast<uint64_t>(now.wall_us % second / 1000));
      looked_at++;
    }
  }
  CHECK(looked_at >= 3);
  Counters counters;
  CHECK(bench.plane->close(1, counters, bench.now) && counters.sent == sent);
  const auto last = reports.receive();
  RtcpHeard heard;
  CHECK(last.size() == 1 && rtcp_parse(last[0].data(), last[0].size(), 0, heard) && heard.bye);
}

TEST("the delay since a sender report counts from when it came, not from the tick that took it") {
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  UdpSocket reports;
  Negotiated agreed;
  agreed.rtp = far->here();
  agreed.rtcp = reports.here();
  CHECK(bench.plane->negotiate(1, agreed, bench.now));
  far->say(std::vector<uint8_t>(frame_units, 0xff));
  bench.tick();
  SenderInfo sender;
  sender.ntp = 0x1111222233334444;
  uint8_t bytes[rtcp_max_bytes];
  Datagram datagram;
  datagram.count = rtcp_write(bytes, far->ssrc, &sender, nullptr, "far", false);
  datagram.bytes = bytes;
  datagram.source = reports.here();
  datagram.arrival_us = bench.now.wall_us - 15'000;
  const int64_t came_us = bench.now.us - 15'000;
  bench.plane->leg(1)->receive_rtcp(datagram, bench.now);
  RtcpHeard heard;
  for (int tick = 0; tick < 600 && !heard.about_us; tick++) {
    const int64_t now_us = bench.now.us;
    bench.tick();
    for (const auto& report : reports.receive()) {
      CHECK(rtcp_parse(report.data(), report.size(), far->ssrc, heard));
      CHECK(heard.block.delay_since_sr == static_cast<uint32_t>((now_us - came_us) * 65536 / second));
    }
  }
  CHECK(heard.block.last_sr == 0x22223333);
}

TEST("a source that follows another is reported on anew, without the sender report of the one before") {
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  UdpSocket reports;
  Negotiated agreed;
  agreed.rtp = far->here();
  agreed.rtcp = reports.here();
  CHECK(bench.plane->negotiate(1, agreed, bench.now));
  SenderInfo sender;
  sender.ntp = 0x1111222233334444;
  uint8_t bytes[rtcp_max_bytes];
  const size_t count = rtcp_write(bytes, far->ssrc, &sender, nullptr, "far", false);
  far->say(std::vector<uint8_t>(frame_units, 0xff));
  bench.tick();
  reports.send(own(static_cast<uint16_t>(far->leg.port() + 1)), std::vector<uint8_t>(bytes, bytes + count));
  const auto block = [&](uint32_t about) {
    (void)reports.receive();
    for (int tick = 0; tick < 600; tick++) {
      far->say(std::vector<uint8_t>(frame_units, 0xff));
      bench.tick();
      for (const auto& report : reports.receive()) {
        RtcpHeard heard;
        if (rtcp_parse(report.data(), report.size(), about, heard) && heard.about_us) return heard.block;
      }
    }
    return ReportBlock{};
  };
  CHECK(block(far->ssrc).last_sr == 0x22223333);
  far->ssrc = 99;
  const ReportBlock anew = block(99);
  CHECK(anew.ssrc == 99 && anew.last_sr == 0 && anew.delay_since_sr == 0);
}

TEST("the jitter of a call is the same time before and after it changes to a codec with another clock") {
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  const auto jitter_us = [&] {
    Counters counters;
    return bench.plane->counters(1, counters) ? counters.jitter_us : 0;
  };
  const auto say = [&](int packets, uint32_t shift) {  // every second one is early
    for (int i = 0; i < packets; i++) {
      far->timestamp += i % 2 == 0 ? shift : 0 - shift;
      far->say(std::vector<uint8_t>(frame_units, 0xff));
      bench.tick();
    }
  };
  say(200, 80);
  CHECK(jitter_us() > 9'000 && jitter_us() < 11'000);
  for (const Codec codec : {Codec::opus, Codec::pcmu}) {
    const uint32_t before = jitter_us();
    Negotiated agreed;
    agreed.rtp = far->here();
    agreed.rtcp = nowhere();
    agreed.codec = codec;
    agreed.payload_type = far->payload_type = codec == Codec::opus ? 111 : 0;
    far->frame_clock = frame_units * codec_clock_scale(codec);
    far->timestamp += 12'345;
    CHECK(bench.plane->negotiate(1, agreed, bench.now));
    CHECK(jitter_us() + 200 > before && jitter_us() < before + 200);
    say(1, 0);
    CHECK(jitter_us() + 200 > before && jitter_us() < before + 200);
    say(100, 80 * codec_clock_scale(codec));
    CHECK(jitter_us() > 9'000 && jitter_us() < 11'000);
  }
}

TEST("what came too late stays counted when nobody listens any more; a leg that ends in its room tells its delay") {
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  CHECK(bench.plane->open_room(9) && bench.plane->join(1, 9, false, 100, 100));
  // Two seconds of packets, of which one comes 30 ticks after its turn.
  const auto say = [&] {
    const std::vector<uint8_t> frame(frame_units, 0x40);
    uint16_t held = 0;
    uint32_t held_at = 0;
    const auto turn = [&] {
      std::swap(far->sequence, held);
      std::swap(far->timestamp, held_at);
    };
    for (int tick = 0; tick < 100; tick++) {
      if (tick == 50) {
        held = far->sequence++;
        held_at = far->timestamp;
        far->timestamp += frame_units;
      } else {
        far->say(frame);
      }
      if (tick == 80) {
        turn();
        far->say(frame);
        turn();
      }
      bench.tick();
    }
  };
  Counters counters;
  say();
  CHECK(bench.plane->counters(1, counters) && counters.late == 1 && counters.delay_us >= 20'000);
  far->ssrc++;
  say();
  CHECK(bench.plane->counters(1, counters) && counters.late == 2);
  Negotiated agreed;
  agreed.rtp = far->here();
  agreed.rtcp = nowhere();
  agreed.codec = Codec::pcma;
  agreed.payload_type = far->payload_type = 8;
  CHECK(bench.plane->negotiate(1, agreed, bench.now));
  CHECK(bench.plane->counters(1, counters) && counters.late == 2);
  say();
  CHECK(bench.plane->leave(1));
  bench.tick();
  CHECK(bench.plane->counters(1, counters) && counters.late == 3 && counters.delay_us == 0);
  CHECK(bench.plane->join(1, 9, false, 100, 100));
  say();
  CHECK(bench.plane->close(1, counters, bench.now) && counters.late == 4 && counters.delay_us >= 20'000);
}
