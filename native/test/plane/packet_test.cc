#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "plane/leg/quality.h"
#include "plane/rtp/reception.h"
#include "plane/rtp/rtcp.h"
#include "plane/rtp/rtp.h"
#include "plane/rtp/rtp_source.h"
#include "plane/rtp/telephone_event.h"
#include "test/check.h"

using namespace sidetone;

namespace {

using Bytes = std::vector<uint8_t>;

/** One telephone-event packet into `event`; the digit it completed, or 0. */
char press(TelephoneEvent& event, uint8_t code, bool end, uint16_t duration, uint32_t timestamp, int64_t now_us,
           uint32_t* ms = nullptr, bool marker = false) {
  const uint8_t payload[4] = {code, static_cast<uint8_t>(end ? 0x8a : 0x0a), static_cast<uint8_t>(duration >> 8),
                              static_cast<uint8_t>(duration)};
  Digit digit;
  const bool complete = event.receive(payload, 4, timestamp, marker, now_us, digit);
  if (complete && ms != nullptr) *ms = digit.duration_ms;
  return complete ? digit.key : 0;
}

}  // namespace

TEST("an RTP header is written and read back, with CSRCs, extension and padding skipped") {
  uint8_t bytes[64] = {};
  rtp_write_header(bytes, true, 101, 0xfffe, 0xdeadbeef, 0x01020304);
  bytes[12] = 7;
  RtpPacket packet;
  CHECK(rtp_parse(bytes, 13, packet));
  CHECK(packet.marker && packet.payload_type == 101 && packet.sequence == 0xfffe && packet.timestamp == 0xdeadbeef &&
        packet.ssrc == 0x01020304);
  CHECK(packet.payload_bytes == 1 && packet.payload[0] == 7);

  Bytes full = {0xb2, 0, 0, 1, 0,    0,    0, 2, 0, 0, 0, 3, 1,  1,  1, 1,
                2,    2, 2, 2, 0xbe, 0xde, 0, 1, 9, 9, 9, 9, 42, 43, 0, 2};
  CHECK(rtp_parse(full.data(), full.size(), packet));
  CHECK(packet.payload_bytes == 2 && packet.payload[0] == 42 && packet.payload[1] == 43);
}

TEST("malformed RTP is rejected") {
  RtpPacket packet;
  const Bytes good = {0x80, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3};
  CHECK(rtp_parse(good.data(), good.size(), packet) && packet.payload_bytes == 0);
  for (size_t length = 0; length < 12; length++) CHECK(!rtp_parse(good.data(), length, packet));
  for (const uint8_t first : {0x00, 0x40, 0xc0, 0x81, 0x8f, 0x90}) {
    Bytes bad = good;
    bad[0] = static_cast<uint8_t>(first);
    CHECK(!rtp_parse(bad.data(), bad.size(), packet));
  }
  Bytes extension = {0x90, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
  CHECK(!rtp_parse(extension.data(), extension.size(), packet));
  Bytes padding = {0xa0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 0};
  CHECK(!rtp_parse(padding.data(), padding.size(), packet));  // a pad count of zero
  padding.back() = 4;
  CHECK(!rtp_parse(padding.data(), padding.size(), packet));  // more padding than payload
  padding.back() = 3;
  CHECK(rtp_parse(padding.data(), padding.size(), packet) && packet.payload_bytes == 0);
}

TEST("reception counts loss, duplicates and reordering over the wrap of sequence numbers") {
  Reception reception;
  reception.start(1, 65530);
  int accepted = 0;
  for (uint32_t i = 0; i < 20; i++) {
    if (i == 3 || i == 8) continue;  // lost
    if (reception.sequence(static_cast<uint16_t>(65530 + i)) == Reception::Verdict::accepted) accepted++;
    if (i == 10) {
      CHECK(reception.sequence(static_cast<uint16_t>(65530 + 10)) == Reception::Verdict::duplicate_or_late);
      CHECK(reception.sequence(static_cast<uint16_t>(65530 + 8)) == Reception::Verdict::accepted);  // late, not lost
      CHECK(reception.sequence(static_cast<uint16_t>(65530 + 8)) == Reception::Verdict::duplicate_or_late);
    }
  }
  CHECK(accepted == 18);
  CHECK(reception.received() == 19);
  CHECK(reception.lost() == 1);
  CHECK(reception.extended_highest() - 65530 == 19);
  CHECK(reception.fraction_lost() == 256 / 20);
  CHECK(reception.fraction_lost() == 0);
}

TEST("reception starting at sequence number 0 has lost nothing") {
  Reception reception;
  reception.start(1, 0);
  CHECK(reception.sequence(0) == Reception::Verdict::accepted);
  CHECK(reception.sequence(1) == Reception::Verdict::accepted);
  CHECK(reception.lost() == 0 && reception.received() == 2);
}

TEST("a wild jump of the sequence number is believed only when a second packet follows it") {
  Reception reception;
  reception.start(1, 100);
  CHECK(reception.sequence(100) == Reception::Verdict::accepted);
  CHECK(reception.sequence(30000) == Reception::Verdict::rejected);
  CHECK(reception.sequence(101) == Reception::Verdict::accepted);
  CHECK(reception.sequence(30000) == Reception::Verdict::rejected);
  CHECK(reception.sequence(30001) == Reception::Verdict::accepted);
  CHECK(reception.lost() == 0);
}

TEST("a source that restarts its numbering keeps what was counted of it") {
  Reception reception;
  reception.start(1, 1);
  for (uint16_t i = 1; i <= 500; i++) {
    if (i % 100 != 0) CHECK(reception.sequence(i) == Reception::Verdict::accepted);
  }
  CHECK(reception.sequence(500) == Reception::Verdict::accepted);
  for (uint16_t i = 20000; i < 20100; i++) (void)reception.sequence(i);
  CHECK(reception.received() == 99 && reception.lost() == 0);  // the first of the new numbers was not believed
  CHECK(reception.received_in_all() == 496 + 99 && reception.lost_in_all() == 4);
}

namespace {

/** Packets of 20 ms from sequence number and timestamp near their wraps on, as one source sends them. */
struct Sender {
  uint16_t sequence = 65'400;
  uint32_t timestamp = 0xffff'0000;
  Reception::Verdict send(Reception& reception) {
    if (!reception.started()) reception.start(1, sequence);
    timestamp += 160;
    return reception.sequence(sequence++, timestamp);
  }
  int accepted_of(Reception& reception, int packets) {
    int accepted = 0;
    for (int i = 0; i < packets; i++) accepted += send(reception) == Reception::Verdict::accepted;
    return accepted;
  }
};

}  // namespace

TEST("a source that sets its numbers back by any number while its timestamps go on loses one packet at most") {
  for (int back = 1; back <= 1000; back++) {
    Reception reception;
    Sender sender;
    CHECK(sender.accepted_of(reception, 300) == 300);
    (void)reception.fraction_lost();
    sender.sequence = static_cast<uint16_t>(sender.sequence - back);
    CHECK(sender.accepted_of(reception, 300) >= 299);
    CHECK(reception.received_in_all() >= 599 && reception.lost_in_all() == 0 && reception.fraction_lost() == 0);
  }
}

TEST("packets that were overtaken or doubled, and keys, do not make a source begin anew") {
  Reception reception;
  Sender sender;
  CHECK(sender.accepted_of(reception, 200) == 200);
  for (int turn = 0; turn < 100; turn++) {
    Sender overtaken = sender;
    sender.sequence = static_cast<uint16_t>(sender.sequence + 3);
    sender.timestamp += 480;
    CHECK(sender.accepted_of(reception, 2) == 2);
    CHECK(overtaken.accepted_of(reception, 3) == 3);
    overtaken.sequence = static_cast<uint16_t>(overtaken.sequence - 3);
    overtaken.timestamp -= 480;
    CHECK(overtaken.accepted_of(reception, 3) == 0);
    // The packets of a key have the timestamp of its beginning, beside sound whose timestamps go on.
    for (int i = 0; i < 5; i++) {
      CHECK(reception.sequence(sender.sequence++) == Reception::Verdict::accepted);
      CHECK(sender.accepted_of(reception, 1) == 1);
    }
    CHECK(reception.sequence(static_cast<uint16_t>(sender.sequence - 2)) == Reception::Verdict::duplicate_or_late);
    CHECK(reception.sequence(static_cast<uint16_t>(sender.sequence - 1)) == Reception::Verdict::duplicate_or_late);
  }
  CHECK(reception.lost() == 0 && reception.received() == 200 + 100 * 15);
}

TEST("one packet with an old number and a new timestamp changes nothing") {
  Reception reception;
  Sender sender;
  CHECK(sender.accepted_of(reception, 200) == 200);
  for (int i = 1; i < 100; i++) {
    const uint16_t old = static_cast<uint16_t>(sender.sequence - 1 - i);
    CHECK(reception.sequence(old, sender.timestamp + 160) == Reception::Verdict::duplicate_or_late);
    CHECK(sender.send(reception) == Reception::Verdict::accepted);
  }
  CHECK(reception.lost() == 0 && reception.received() == 299);
}

TEST("jitter is the smoothed difference of transit times of RFC 3550") {
  Reception reception;
  reception.start(1, 0);
  double expected = 0;
  int64_t before = 0;
  for (int i = 0; i < 200; i++) {
    const int64_t transit = i % 2 == 0 ? 0 : 80;  // 10 ms to and fro
    reception.arrival(static_cast<uint32_t>(i * 160), i * 160 + transit);
    if (i > 0) expected += (std::abs(static_cast<double>(transit - before)) - expected) / 16;
    before = transit;
  }
  CHECK(reception.jitter_units() >= expected - 2 && reception.jitter_units() <= expected + 2);
}

TEST("an even stream has no jitter, whatever the offset of the clocks and where its timestamps wrap") {
  Reception reception;
  reception.start(7, 1);
  const uint32_t first = 0u - 10 * 160;
  for (uint32_t i = 0; i < 20; i++) reception.arrival(first + i * 160, 8'000'000'000 + i * 160);
  CHECK(reception.jitter_units() == 0);
  // A pause of ten seconds is a new timeline, and one of less is jitter.
  reception.arrival(first + 20 * 160, 8'000'000'000 + 20 * 160 + 80'000);
  CHECK(reception.jitter_units() == 0);
  reception.arrival(first + 21 * 160, 8'000'000'000 + 21 * 160 + 80'000 - 1'600);
  CHECK(reception.jitter_units() == 100);
}

TEST("strays of another numbering between the packets of a stream never make it begin anew") {
  Reception reception;
  reception.start(7, 100);
  for (uint16_t i = 100; i < 120; i++) {
    CHECK(reception.sequence(i, i * 160u) == Reception::Verdict::accepted);
    CHECK(reception.sequence(static_cast<uint16_t>(30'000 + i), 5u) == Reception::Verdict::rejected);
  }
  CHECK(reception.received() == 20 && reception.lost() == 0 && reception.extended_highest() == 119);
}

TEST("a packet that was overtaken by up to 63 others is no loss, and counts once") {
  for (const uint16_t gap : {2, 40, 63, 64, 65, 99}) {
    Reception reception;
    reception.start(7, 65'500);
    (void)reception.sequence(65'500);
    (void)reception.sequence(static_cast<uint16_t>(65'500 + gap));
    CHECK(reception.lost() == gap - 1);
    for (int again = 0; again < 2; again++) {
      for (uint16_t behind = 1; behind < gap; behind++) {
        const bool counts = again == 0 && behind < 64;
        CHECK((reception.sequence(static_cast<uint16_t>(65'500 + gap - behind)) == Reception::Verdict::accepted) ==
              counts);
      }
    }
    CHECK(reception.lost() == (gap > 64 ? gap - 64 : 0));
    CHECK(reception.sequence(static_cast<uint16_t>(65'500 + gap)) == Reception::Verdict::duplicate_or_late);
  }
}

TEST("a report is written as a compound and read back, with BYE") {
  SenderInfo sender;
  sender.ntp = 0x0102030405060708;
  sender.timestamp = 99;
  ReportBlock block;
  block.ssrc = 7;
  block.fraction_lost = 12;
  block.lost = -3;
  block.highest = 70000;
  block.jitter = 5;
  uint8_t out[rtcp_max_bytes];
  for (const bool bye : {false, true}) {
    const size_t count = rtcp_write(out, 42, &sender, &block, "0123456789abcdef", bye);
    CHECK(count <= sizeof out && count % 4 == 0);
    RtcpHeard heard;
    CHECK(rtcp_parse(out, count, 7, heard));
    CHECK(heard.sender_report && heard.sender_ssrc == 42 && heard.middle_ntp == 0x03040506);
    CHECK(heard.about_us && heard.block.lost == -3 && heard.block.highest == 70000 && heard.block.fraction_lost == 12);
    CHECK(heard.bye == bye);
    for (size_t cut = 0; cut < count; cut++) {
      RtcpHeard part;
      if (rtcp_parse(out, cut, 7, part)) CHECK(cut % 4 == 0);
    }
  }
  const size_t receiver_only = rtcp_write(out, 42, nullptr, nullptr, "x", false);
  RtcpHeard heard;
  CHECK(rtcp_parse(out, receiver_only, 7, heard) && !heard.sender_report && !heard.about_us);
}

TEST("a key is one digit, however often its end comes") {
  TelephoneEvent event;
  uint32_t ms = 0;
  for (uint16_t i = 1; i <= 4; i++)
    CHECK(press(event, 5, false, static_cast<uint16_t>(i * 160), 1000, i * 20000, nullptr, i == 1) == 0);
  CHECK(press(event, 5, true, 800, 1000, 100000, &ms) == '5');
  CHECK(ms == 100);
  CHECK(press(event, 5, true, 800, 1000, 100000) == 0);
  CHECK(press(event, 5, true, 800, 1000, 120000) == 0);
  CHECK(press(event, 5, false, 640, 1000, 130000) == 0);  // an overtaken update
}

TEST("the same key pressed twice is two digits, and a late end of the first is none") {
  TelephoneEvent event;
  CHECK(press(event, 11, true, 400, 1000, 0) == '#');
  CHECK(press(event, 11, false, 160, 3000, 20000) == 0);
  CHECK(press(event, 11, true, 400, 1000, 25000) == 0);
  CHECK(press(event, 11, true, 480, 3000, 40000) == '#');
}

TEST("a key whose end is lost is complete at the next key, or after 200 ms of silence") {
  TelephoneEvent event;
  uint32_t ms = 0;
  CHECK(press(event, 1, false, 160, 1000, 0) == 0);
  CHECK(press(event, 1, false, 320, 1000, 20000) == 0);
  CHECK(press(event, 2, false, 160, 2000, 60000, &ms) == '1');
  CHECK(ms == 40);
  Digit digit;
  CHECK(!event.expire(60000 + TelephoneEvent::end_lost_us - 1, digit));
  CHECK(event.expire(60000 + TelephoneEvent::end_lost_us, digit));
  CHECK(digit.key == '2' && digit.duration_ms == 20);
  CHECK(!event.expire(10'000'000, digit));
  CHECK(press(event, 2, true, 400, 2000, 400000) == 0);  // its end after all
}

TEST("a key held for longer than a duration field is one digit of its whole length") {
  TelephoneEvent event;
  uint32_t ms = 0;
  CHECK(press(event, 9, false, 0xffff, 1000, 0) == 0);
  CHECK(press(event, 9, false, 800, 1000 + 0xffff, 20000) == 0);
  CHECK(press(event, 9, true, 1600, 1000 + 0xffff, 120000, &ms) == '9');
  CHECK(ms == (0xffffu + 1600) / 8);
}

TEST(
    "a key held for twenty seconds and sent in segments is told once, however the sender ends them (RFC 4733 "
    "2.5.1.3)") {
  const auto keys_of = [](uint32_t segment_units, bool each_ends, bool marked, int lost_at_seam) {
    TelephoneEvent event;
    std::string told;
    uint32_t start = 4'000'000'000;
    uint32_t units = 0;
    Digit digit;
    bool first = true;
    const auto send = [&](bool end, int64_t now_us) {
      const uint8_t payload[4] = {5, static_cast<uint8_t>(end ? 0x8a : 0x0a), static_cast<uint8_t>(units >> 8),
                                  static_cast<uint8_t>(units)};
      if (event.receive(payload, sizeof payload, start, first || (marked && units == 160), now_us, digit))
        told += digit.key;
      first = false;
    };
    int64_t now_us = 0;
    int lost = 0;
    for (int packet = 0; packet < 1000; packet++, now_us += 20'000) {
      units += 160;
      if (units > segment_units) {
        units = segment_units;
        if (each_ends) send(true, now_us);
        start += segment_units;
        units = 160;
        lost = lost_at_seam;
      }
      if (event.expire(now_us, digit)) told += digit.key;
      if (lost > 0) lost--;
      else send(false, now_us);
    }
    for (int i = 0; i < 3; i++) send(true, now_us);
    return told;
  };
  for (const uint32_t segment : {0xffffu, 0xffa0u, 0xff00u, 64'000u}) {
    for (const bool each_ends : {false, true}) {
      for (const bool marked : {false, true}) {
        for (const int lost : {0, 1, 5, 15}) {
          if (marked && lost > 0) continue;  // the marker is in the first packet
          CHECK(keys_of(segment, each_ends, marked, lost) == "5");
        }
      }
    }
  }
}

TEST("the same key pressed again some eight seconds later is another one") {
  for (const uint32_t later : {0xf800u, 0xffffu, 0x10000u}) {
    TelephoneEvent event;
    CHECK(press(event, 7, true, 800, 1000, 0) == '7');
    CHECK(press(event, 7, true, 800, 1000 + later, 8'000'000) == '7');
  }
}

TEST("a sender that starts its timeline over is heard again, flash and torn payloads are not keys") {
  TelephoneEvent event;
  CHECK(press(event, 3, true, 400, 4'000'000, 0) == '3');
  CHECK(press(event, 4, true, 400, 500, 20000) == '4');
  CHECK(press(event, 16, true, 400, 9000, 40000) == 0);
  Digit digit;
  const uint8_t torn[3] = {1, 0x80, 1};
  CHECK(!event.receive(torn, 3, 20000, false, 0, digit));
}

TEST("a key that is held for a second is told once, at its end") {
  TelephoneEvent event;
  Digit digit;
  uint32_t ms = 0;
  for (uint16_t tick = 1; tick < 50; tick++) {
    CHECK(press(event, 15, false, static_cast<uint16_t>(tick * 160), 1000, tick * 20'000) == 0);
    CHECK(!event.expire(tick * 20'000 + 10'000, digit) && event.active());
  }
  CHECK(press(event, 15, true, 8000, 1000, 1'000'000, &ms) == 'D' && ms == 1000 && !event.active());
}

TEST("an update that was overtaken does not shorten a key, and another key under its timestamp is none") {
  TelephoneEvent event;
  Digit digit;
  CHECK(press(event, 1, false, 480, 1000, 0) == 0);
  CHECK(press(event, 1, false, 320, 1000, 20'000) == 0);
  CHECK(press(event, 2, true, 640, 1000, 40'000) == 0);
  CHECK(!event.expire(219'999, digit));
  CHECK(event.expire(220'000, digit) && digit.key == '1' && digit.duration_ms == 60);
}

TEST("a late packet of a key that was told is none, also after the sender began its timeline anew") {
  TelephoneEvent event;
  for (uint32_t i = 0; i < 3; i++) CHECK(press(event, 1, true, 800, 1'000'000 + i * 2000, i) == '1');
  CHECK(press(event, 2, true, 800, 500, 10) == '2');
  CHECK(press(event, 3, true, 800, 2500, 20) == '3');
  for (uint32_t i = 0; i < 3; i++) CHECK(press(event, 1, true, 800, 1'000'000 + i * 2000, 30) == 0);
  CHECK(press(event, 2, true, 800, 500, 40) == 0);
  // While a key is pressed, too; a timeline that begins anew within it ends it.
  CHECK(press(event, 4, false, 160, 200'000, 50) == 0);
  CHECK(press(event, 5, true, 160, 200'000 - 79'999, 60) == 0);
  CHECK(press(event, 6, false, 160, 200'000 - 80'000, 70) == '4');
}

TEST("a segment goes on with a key where it follows the one before it, and is the key again where it does not") {
  for (const uint32_t passed : {0xefffu, 0xf000u, 0x10000u, 0x10001u}) {
    const bool goes_on = passed >= 0xf000 && passed <= 0x10000;
    TelephoneEvent event;
    Digit digit;
    CHECK(press(event, 7, false, 0xef00, 1000, 0) == 0);
    CHECK(press(event, 7, false, 160, 1000 + passed, 20'000) == (goes_on ? 0 : '7'));
    CHECK(event.expire(1'000'000, digit) && digit.key == '7');
    CHECK(digit.duration_ms == (goes_on ? (passed + 160) / 8 : 20));
    CHECK(press(event, 8, false, 0xf100, 500'000, 2'000'000) == 0);
    CHECK(press(event, 9, false, 160, 500'000 + passed, 2'020'000) == '8');  // another key is no segment
  }
}

TEST("the estimated MOS is that of the E-model: 4.4 at best, less with loss and delay, never under 1") {
  const auto near = [](double a, double b) { return a - b < 0.01 && b - a < 0.01; };
  CHECK(near(mos_estimate(0, 0), 4.41));
  CHECK(near(mos_estimate(0, 150), 4.33));
  CHECK(near(mos_estimate(0, 300), 3.71));
  CHECK(near(mos_estimate(0.05, 0), 3.92));
  CHECK(mos_estimate(1, 1000) == 1);
  for (int lost = 0; lost <= 100; lost++) {
    for (int ms = 0; ms <= 2000; ms += 50) {
      const double here = mos_estimate(lost / 100.0, ms);
      CHECK(here >= 1 && here < 4.5);
      CHECK(mos_estimate((lost + 1) / 100.0, ms) <= here && mos_estimate(lost / 100.0, ms + 50) <= here);
    }
  }
}

TEST("of two sources that take turns after the one before them has ended, one is heard from its second packet on") {
  RtpSource source;
  RtpPacket packet;
  const auto judge = [&](uint32_t ssrc, uint16_t sequence) {
    packet.ssrc = ssrc;
    packet.sequence = sequence;
    return source.judge(packet);
  };
  CHECK(judge(1, 10) == RtpSource::Verdict::anew);
  CHECK(judge(2, 500) == RtpSource::Verdict::stranger);
  CHECK(judge(1, 11) == RtpSource::Verdict::known);
  CHECK(judge(2, 501) == RtpSource::Verdict::stranger);  // not in a row: the source in use was heard between
  CHECK(judge(3, 900) == RtpSource::Verdict::stranger);
  CHECK(judge(2, 502) == RtpSource::Verdict::anew);
  CHECK(judge(3, 901) == RtpSource::Verdict::stranger);
  CHECK(judge(2, 503) == RtpSource::Verdict::known);
}

TEST("what the sources of a call lost is added up, and one is believed by two packets in a row only") {
  RtpSource source;
  const auto hear = [&](uint32_t ssrc, uint16_t sequence) {
    RtpPacket packet;
    packet.ssrc = ssrc;
    packet.sequence = sequence;
    const RtpSource::Verdict verdict = source.judge(packet);
    if (verdict != RtpSource::Verdict::stranger) (void)source.now().sequence(sequence);
    return verdict;
  };
  CHECK(hear(1, 10) == RtpSource::Verdict::anew && hear(1, 13) == RtpSource::Verdict::known && source.lost() == 2);
  CHECK(hear(2, 500) == RtpSource::Verdict::stranger && hear(2, 502) == RtpSource::Verdict::stranger);
  CHECK(hear(1, 14) == RtpSource::Verdict::known && hear(2, 503) == RtpSource::Verdict::stranger);
  CHECK(hear(2, 504) == RtpSource::Verdict::anew && hear(2, 506) == RtpSource::Verdict::known);
  CHECK(source.lost() == 3 && source.received() == 5);
}
