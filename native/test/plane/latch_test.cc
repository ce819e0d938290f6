// The rules of strict latching, one by one and against strangers on real sockets. The
// attacks are those of Asterisk's AST-2017-005 and rtpengine's CVE-2025-53399: a stranger is first, floods, comes in
// the middle, or comes during hold.
#include <random>
#include <string>
#include <vector>

#include "plane/leg/latch.h"
#include "plane/plane.h"
#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

constexpr int64_t second = 1'000'000;
constexpr int64_t packet_us = 20'000;

Address at(const char* host, uint16_t port) {
  Address address;
  (void)address.parse(host, port);
  return address;
}

const Address sdp = at("192.0.2.1", 4000);
const Address behind_nat = at("198.51.100.7", 6000);
const Address moved = at("198.51.100.7", 6666);
const Address stranger = at("203.0.113.9", 5000);
constexpr char peer[] = "198.51.100.7";

/** A latch and its clock. Each source sends with an SSRC and a sequence of its own. */
struct Line {
  Latch latch;
  int64_t now_us = 5 * second;

  explicit Line(const char* learn_from = peer, bool held = false, const Address& address = sdp) {
    expect(address, learn_from, held);
  }
  void expect(const Address& address, const char* learn_from = peer, bool held = false) {
    latch.expect(address, AddressRange::parse_list(learn_from), held);
  }
  /** Sends so many packets in a row, 20 ms apart; returns how many the leg took. */
  int say(const Address& source, uint32_t ssrc, uint16_t first, int count) {
    int taken = 0;
    for (int i = 0; i < count; i++) {
      taken += latch.accept(source, ssrc, static_cast<uint16_t>(first + i), now_us);
      now_us += packet_us;
    }
    return taken;
  }
  bool sends_to(const Address& address) const { return latch.remote() == address; }
};

}  // namespace

TEST("a range of addresses is a literal or a CIDR of either family, and an IPv4-mapped address is the IPv4 address") {
  const struct {
    const char* range;
    const char* host;
    bool within;
  } cases[] = {
      {"192.0.2.0/24", "192.0.2.255", true},
      {"192.0.2.0/24", "192.0.3.0", false},
      {"192.0.2.7", "192.0.2.7", true},
      {"192.0.2.7", "192.0.2.8", false},
      {"192.0.2.128/25", "192.0.2.127", false},
      {"0.0.0.0/0", "203.0.113.9", true},
      {"0.0.0.0/0", "2001:db8::1", false},
      {"2001:db8::/32", "2001:db8:ffff::1", true},
      {"2001:db8::/33", "2001:db8:8000::1", false},
      {"::/0", "192.0.2.1", false},
      {"192.0.2.0/24", "::ffff:192.0.2.9", true},
      {"::ffff:192.0.2.9", "192.0.2.9", true},
      {"::ffff:192.0.2.0/120", "192.0.2.1", true},
      {"10.1.2.3/8", "10.200.0.1", true},
  };
  for (const auto& test : cases) {
    AddressRange range;
    CHECK(range.parse(test.range));
    CHECK(range.contains(at(test.host, 1)) == test.within);
  }
  for (const char* text : {"", "/", "example.com", "192.0.2.0/33", "192.0.2.0/", "192.0.2.0/-1", "192.0.2.0/1x",
                           "::/129", "192.0.2.0/0008", "1.2.3"}) {
    AddressRange range;
    CHECK(!range.parse(text));
    CHECK(!range.contains(at("192.0.2.1", 1)));
  }
  CHECK(AddressRange::parse_list("192.0.2.7,,nonsense,2001:db8::/32,").size() == 2);
}

TEST("a far end behind a NAT is learnt where packets of two SSRCs of its own come in turn") {
  Line line;
  int taken = 0;
  for (uint16_t i = 0; i < 4; i++) {
    taken += line.say(behind_nat, 7, static_cast<uint16_t>(100 + i), 1);
    taken += line.say(behind_nat, 8, static_cast<uint16_t>(9000 + i), 1);
  }
  CHECK(taken == 6 && line.sends_to(behind_nat));
}

TEST("the address in SDP takes the leg back with its first packet, whoever was learnt before it") {
  Line line;
  CHECK(line.say(behind_nat, 2, 1, 2) == 1);
  CHECK(line.sends_to(behind_nat));
  CHECK(line.say(sdp, 1, 1, 1) == 1);
  CHECK(line.sends_to(sdp));
  CHECK(line.say(behind_nat, 2, 3, 50) == 0);
}

TEST(
    "a source from elsewhere than the signalling address and the trunk's ranges is never learnt, first, later or after "
    "silence") {
  Line line;
  CHECK(line.say(stranger, 2, 1, 500) == 0);
  CHECK(line.say(sdp, 1, 1, 3) == 3);
  CHECK(line.say(stranger, 2, 501, 500) == 0);  // ten seconds in which the caller is silent
  CHECK(line.sends_to(sdp));
}

TEST("another source is learnt at its second packet in a row while the address in SDP has not sent") {
  Line line;
  CHECK(line.say(behind_nat, 2, 1, 1) == 0);
  CHECK(line.sends_to(sdp));
  CHECK(line.say(behind_nat, 2, 3, 1) == 0);  // one was lost: not in a row
  CHECK(line.say(behind_nat, 9, 4, 1) == 0);  // another stream
  CHECK(line.say(behind_nat, 9, 5, 1) == 1);
  CHECK(line.sends_to(behind_nat));
}

TEST("once the address in SDP has sent, another source is learnt only after two seconds of its silence") {
  Line line;
  CHECK(line.say(sdp, 1, 1, 1) == 1);
  const int refused = static_cast<int>(Latch::silence_us / packet_us) - 1;  // the first packet comes 20 ms after it
  CHECK(line.say(behind_nat, 2, 1, refused) == 0);
  CHECK(line.say(behind_nat, 2, static_cast<uint16_t>(1 + refused), 1) == 1);
  CHECK(line.sends_to(behind_nat));
}

TEST("a far end whose NAT gives it another port without new SDP is followed after two seconds, not before") {
  Line line;
  CHECK(line.say(behind_nat, 2, 1, 100) == 99);
  const int refused = static_cast<int>(Latch::silence_us / packet_us) - 1;
  CHECK(line.say(moved, 2, 101, refused) == 0);
  CHECK(line.say(moved, 2, static_cast<uint16_t>(101 + refused), 10) == 10);
  CHECK(line.sends_to(moved));
  CHECK(line.say(behind_nat, 2, 300, 20) == 0);  // the old binding may not take it back while the new one sends
}

TEST("stray packets of many sources cannot close the window for a far end behind NAT") {
  Line line("198.51.100.0/24");
  std::mt19937 random(30);
  for (int i = 0; i < 1000; i++) {  // from outside the ranges, and single ones from inside
    const bool inside = i % 3 == 0;
    const Address stray =
        at(inside ? "198.51.100.200" : "203.0.113.9", static_cast<uint16_t>(1024 + random() % 60'000));
    CHECK(!line.latch.accept(stray, random(), static_cast<uint16_t>(random()), line.now_us));
  }
  CHECK(line.say(behind_nat, 2, 1, 1) == 0);
  for (size_t i = 0; i + 1 < Latch::candidates_max; i++) {
    CHECK(!line.latch.accept(at("198.51.100.200", static_cast<uint16_t>(2000 + i)), 7, 1, line.now_us));
  }
  CHECK(line.say(behind_nat, 2, 2, 1) == 1);
  CHECK(line.sends_to(behind_nat));
}

TEST("nobody is learnt during hold, and the far end is the same after it") {
  Line line(peer, true);
  CHECK(line.say(behind_nat, 2, 1, 500) == 0);
  line.expect(sdp);
  CHECK(line.say(behind_nat, 2, 501, 2) == 1);
  line.expect(sdp, peer, true);
  CHECK(line.say(moved, 3, 1, 500) == 0);
  CHECK(line.say(behind_nat, 2, 503, 1) == 1);
  line.expect(sdp);
  CHECK(line.sends_to(behind_nat));
}

TEST("a session refresh keeps what was learnt and opens no window; another address in SDP begins anew") {
  Line line;
  CHECK(line.say(behind_nat, 2, 1, 10) == 9);
  line.expect(sdp);
  CHECK(line.sends_to(behind_nat));
  CHECK(line.say(moved, 3, 1, 5) == 0);
  const Address other = at("192.0.2.1", 4002);
  line.expect(other);
  CHECK(line.sends_to(other));
  CHECK(line.say(sdp, 1, 1, 100) == 0);
  CHECK(line.say(behind_nat, 2, 100, 2) == 1);
}

TEST("another address in SDP is unheard: whoever else may be learnt is counted anew, and waits for nobody") {
  Line line;
  CHECK(line.say(sdp, 1, 100, 5) == 5);
  CHECK(line.say(behind_nat, 2, 200, 1) == 0);
  line.expect(stranger);
  CHECK(line.say(behind_nat, 2, 201, 1) == 0);  // the second of the call, and the first since the answer
  CHECK(line.say(behind_nat, 2, 202, 1) == 1 && line.sends_to(behind_nat));
}

TEST(
    "a far end that moved by SDP is sent to where it is, and heard from where it was, until it sends, for two "
    "seconds") {
  const char both[] = "192.0.2.1,198.51.100.7";
  for (const char* learn_from : {both, ""}) {
    Line line(learn_from);
    CHECK(line.say(sdp, 1, 100, 5) == 5);
    line.expect(moved, learn_from);
    CHECK(line.say(sdp, 1, 105, 90) == 90 && line.sends_to(moved));  // 1.8 s
    CHECK(line.say(moved, 2, 200, 1) == 1 && line.say(sdp, 1, 195, 9) == 0 && line.sends_to(moved));
    line.expect(sdp, learn_from);
    line.now_us += 2 * second;
    const bool is_learnt = line.say(moved, 2, 201, 2) == 1 && line.sends_to(moved);  // it sends from there alone
    CHECK(is_learnt == (learn_from == both));
  }
}

TEST("a far end behind NAT that names another address in SDP and sends as before is followed at once") {
  Line line;
  CHECK(line.say(behind_nat, 2, 200, 2) == 1 && line.sends_to(behind_nat));
  line.expect(at("192.0.2.1", 4002));
  CHECK(line.say(behind_nat, 2, 202, 2) == 1 && line.sends_to(behind_nat));
}

TEST("a source that was counted before another was learnt is counted anew after it") {
  Line line;
  CHECK(line.say(moved, 3, 300, 1) == 0);
  CHECK(line.say(behind_nat, 2, 200, 2) == 1 && line.sends_to(behind_nat));
  line.now_us += 3 * second;
  CHECK(line.say(moved, 3, 301, 1) == 0 && line.sends_to(behind_nat));
  CHECK(line.say(moved, 3, 302, 1) == 1 && line.sends_to(moved));
}

TEST("a first packet with sequence number and SSRC 0 is one packet, not the second of its source") {
  Line line;
  CHECK(line.say(behind_nat, 0, 0, 1) == 0 && line.sends_to(sdp));
  CHECK(line.say(behind_nat, 0, 1, 1) == 1 && line.sends_to(behind_nat));
}

TEST("only the address in SDP, the one in use, and those that may be learnt are worth opening a packet for") {
  Line line;
  const auto worth = [&](const Address& source) { return line.latch.may_come_from(source); };
  CHECK(worth(sdp) && worth(behind_nat) && worth(moved) && !worth(stranger));
  CHECK(line.say(behind_nat, 2, 200, 2) == 1);
  line.expect(sdp, peer, true);
  CHECK(worth(sdp) && worth(behind_nat) && !worth(moved) && !worth(stranger));
  line.expect(sdp, "", false);
  CHECK(worth(sdp) && worth(behind_nat) && !worth(moved));
}

TEST("an address in SDP that a dual-stack socket shows as IPv4-mapped is that address") {
  Line line;
  CHECK(line.say(at("::ffff:192.0.2.1", 4000), 1, 1, 1) == 1);
  CHECK(line.sends_to(sdp));
}

TEST(
    "a stranger who is first, floods, and goes on gets nothing of a call, and the caller is heard from its first "
    "packet") {
  for (const bool rings : {true, false}) {
    Bench bench(rings);
    FarEnd* caller = bench.open();
    FarEnd thief;
    thief.leg = caller->leg;
    const std::vector<uint8_t> noise(frame_units, 0x10);
    const std::vector<uint8_t> speech(frame_units, 0x55);
    for (int tick = 0; tick < 10; tick++) {
      for (int i = 0; i < 5; i++) thief.say(noise);
      bench.tick();
    }
    (void)caller->packets();
    for (int tick = 0; tick < 150; tick++) {
      thief.say(noise);
      if (tick < 20) caller->say(speech);  // then it is silent for longer than two seconds
      bench.tick();
    }
    Counters counters;
    CHECK(bench.plane->counters(1, counters));
    CHECK(counters.received == 20);
    CHECK(caller->packets().size() == 150);
    CHECK(thief.packets().empty());
    for (const Notice& notice : bench.notices()) CHECK(notice.kind != NoticeKind::media_timeout);
  }
}

TEST("a caller behind NAT is followed to its other port after two seconds, from the socket to the audio it is sent") {
  for (const bool rings : {true, false}) {
    Bench bench(rings);
    FarEnd* described = bench.open(Codec::pcmu, false, own_host());
    FarEnd before;
    FarEnd after;
    before.leg = after.leg = described->leg;
    const std::vector<uint8_t> speech(frame_units, 0x55);
    for (int tick = 0; tick < 110; tick++) {
      before.say(speech);
      bench.tick();
    }
    CHECK(before.packets().size() == 109);  // its second packet made it the far end
    after.sequence = before.sequence;
    after.timestamp = before.timestamp;
    for (int tick = 0; tick < 110; tick++) {
      after.say(speech);
      bench.tick();
    }
    CHECK(before.packets().size() == 99 && after.packets().size() == 11);
  }
}
