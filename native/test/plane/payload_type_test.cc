// Which packets of a far end are audio, keys, signs of life, or something that nobody agreed on.
#include <vector>

#include "test/check.h"
#include "test/plane/bench.h"
#include "test/plane/ear.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

const std::vector<uint8_t> loud(frame_units, 0x80);

/** A leg to which 0 and 101 are audio and keys, and 96 and 97 by its own numbers, which the far end may use as well. */
struct Line : Bench {
  FarEnd* far = nullptr;
  Negotiated agreed;
  Ear ear;
  UdpSocket stranger;

  bool begin() {
    far = open();
    if (far == nullptr) return false;
    agreed.rtp = far->here();
    agreed.rtcp = nowhere();
    agreed.event_payload_type = 101;
    agreed.own_payload_type = 96;
    agreed.own_event_payload_type = 97;
    (void)plane->negotiate(1, agreed, now);
    plane->leg(1)->listen(&ear);
    return true;
  }
  void say(uint8_t type, const std::vector<uint8_t>& payload, int count = 1) {
    far->payload_type = type;
    for (int i = 0; i < count; i++) {
      far->say(payload);
      tick();
    }
  }
  /** Sends a packet from an address that is not the far end's. */
  void interfere(uint8_t type, uint16_t number) {
    std::vector<uint8_t> bytes(rtp_header_bytes + frame_units);
    rtp_write_header(bytes.data(), false, type, number, number * 160u, 5);
    stranger.send(far->leg, bytes);
    tick();
  }
  uint32_t received() {
    Counters counters;
    return plane->counters(1, counters) ? counters.received : 0;
  }
  std::vector<Notice> told(NoticeKind kind) {
    std::vector<Notice> all = notices();
    all.erase(std::remove_if(all.begin(), all.end(), [=](const Notice& notice) { return notice.kind != kind; }),
              all.end());
    return all;
  }
};

}  // namespace

TEST("a far end is heard, and its keys are told, by the payload types of either side of the agreement") {
  Line line;
  CHECK(line.begin());
  for (const uint8_t type : {0, 96}) {
    line.ear.voiced = 0;
    line.say(type, loud, 20);
    CHECK(line.ear.voiced >= 17);
  }
  CHECK(line.received() == 40);
  for (const uint8_t type : {101, 97}) {
    line.say(type, {static_cast<uint8_t>(type % 10), 0x8a, 800 >> 8, 800 & 255});
    const auto keys = line.told(NoticeKind::digit);
    CHECK(keys.size() == 1 && keys[0].a == static_cast<uint32_t>('0' + type % 10) && keys[0].b == 100);
  }
}

TEST("comfort noise is a sign of life and no audio: a far end that sends nothing else is not told as gone") {
  Line line;
  CHECK(line.begin());
  line.say(0, loud, 5);
  line.ear.voiced = 0;
  line.say(13, {0x40}, 3100);  // a minute is the media timeout
  CHECK(line.told(NoticeKind::media_timeout).empty() && line.ear.voiced <= 5 && line.received() == 3105);
  for (int i = 0; i < 2990; i++) line.tick();
  CHECK(line.told(NoticeKind::media_timeout).empty());
  for (int i = 0; i < 20; i++) line.tick();
  CHECK(line.told(NoticeKind::media_timeout).size() == 1);
}

TEST("a payload type that nobody agreed on is told at its third packet in a row, if it is the far end's") {
  Line line;
  CHECK(line.begin());
  line.say(0, loud, 5);
  line.say(8, loud, 2);
  line.say(0, loud, 1);
  line.say(8, loud, 2);
  line.say(9, loud, 2);
  CHECK(line.told(NoticeKind::payload_type).empty());
  line.say(9, loud, 10);
  const auto told = line.told(NoticeKind::payload_type);
  CHECK(told.size() == 1 && told[0].leg == 1 && told[0].a == 9 && line.received() == 6);
  for (uint16_t i = 0; i < 10; i++) line.interfere(18, i);
  CHECK(line.told(NoticeKind::payload_type).empty());
}

TEST("a stranger's audio does not keep a far end from another payload type") {
  Line line;
  CHECK(line.begin());
  line.say(0, loud, 5);
  for (uint16_t i = 0; i < 3; i++) {
    line.interfere(0, i);
    line.say(9, loud, 1);
  }
  CHECK(line.told(NoticeKind::payload_type).size() == 1);
}

TEST("a far end that changes its payload type every few seconds is followed for as long as the call lasts") {
  Line line;
  CHECK(line.begin());
  line.agreed.own_payload_type = -1;
  for (int change = 0; change < 100; change++) {
    const uint8_t type = change % 2 == 0 ? 8 : 0;
    line.say(type, loud, 5);
    const auto told = line.told(NoticeKind::payload_type);
    CHECK(told.size() == 1 && told[0].a == type);
    line.agreed.codec = type == 8 ? Codec::pcma : Codec::pcmu;
    line.agreed.payload_type = type;
    (void)line.plane->negotiate(1, line.agreed, line.now);
    line.say(type, loud, 100);
  }
}

TEST("of a far end that changes its payload type with every few packets no more is told than one change a second") {
  Line line;
  CHECK(line.begin());
  size_t told = 0;
  for (int second = 0; second < 60; second++) {
    for (uint8_t type = 8; type < 18; type++) line.say(type, loud, 5);
    told += line.told(NoticeKind::payload_type).size();
  }
  CHECK(told >= 60 && told <= 92);
  line.say(18, loud, 100);  // the one that it stays with is told, once
  const auto last = line.told(NoticeKind::payload_type);
  CHECK(last.size() == 1 && last[0].a == 18);
}

TEST("a far end that says it only listens, or that we hold, is neither heard nor counted as silent") {
  for (const bool holding : {false, true}) {
    Line line;
    CHECK(line.begin());
    line.agreed.receive = holding;
    line.agreed.holding = holding;
    CHECK(line.plane->negotiate(1, line.agreed, line.now));
    line.say(0, loud, 50);
    CHECK(line.ear.voiced == 0 && line.received() == 50);
    line.say(101, {5, 0x8a, 800 >> 8, 800 & 255});  // its keys are
    CHECK(line.told(NoticeKind::digit).size() == 1);
  }
}
