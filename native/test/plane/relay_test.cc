#include <poll.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

#include "kernel/codec/g711.h"
#include "plane/leg/relay.h"
#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using test::Bench;
using test::FarEnd;

namespace {

constexpr uint32_t room = 100;
/** Two who talk are passed through after so many ticks. */
constexpr int settled = 40;

/** One who hears and remembers. */
struct Stream {
  explicit Stream(FarEnd& far) : far_(far) {}

  /** What came since the last call. */
  std::vector<RtpPacket> take() {
    kept_ = far_.packets();
    std::vector<RtpPacket> packets(kept_.size());
    for (size_t i = 0; i < kept_.size(); i++) (void)rtp_parse(kept_[i].data(), kept_[i].size(), packets[i]);
    for (const RtpPacket& packet : packets) {
      int16_t samples[frame_units];
      mulaw_decode(packet.payload, samples, frame_units);
      pcm.insert(pcm.end(), samples, samples + frame_units);
    }
    return packets;
  }
  int32_t steepest(size_t from = 0) const {
    int32_t most = 0;
    for (size_t i = from + 1; i < pcm.size(); i++) most = std::max(most, std::abs(pcm[i] - pcm[i - 1]));
    return most;
  }

  std::vector<int16_t> pcm;

 private:
  FarEnd& far_;
  std::vector<std::vector<uint8_t>> kept_;
};

/** 20 ms of 115 Hz, going on from call to call; no packet ends where it began. */
class Hum {
 public:
  std::vector<uint8_t> next() {
    int16_t pcm[frame_units];
    for (int16_t& sample : pcm) sample = static_cast<int16_t>(8000 * std::sin(2 * M_PI * 115 / 8000 * at_++));
    std::vector<uint8_t> octets(frame_units);
    mulaw_encode(pcm, octets.data(), frame_units);
    return octets;
  }

 private:
  int at_ = 0;
};

/** Its own steps are 2 pi 115 / 8000 of 8000, and mu-law's on top; a click would be thousands. */
constexpr int32_t no_click = 1200;

std::vector<uint8_t> marked(int number) {
  std::vector<uint8_t> octets(frame_units, static_cast<uint8_t>(0x80 | (number % 64)));
  octets[0] = static_cast<uint8_t>(number);
  return octets;
}

struct Two : Bench {
  explicit Two(bool rings = true, Codec other = Codec::pcmu) : Bench(rings) {
    CHECK(plane->open_room(room) && open() != nullptr && open(other) != nullptr);
    for (const uint32_t leg : {1u, 2u}) CHECK(plane->join(leg, room, false, 100, 100));
  }
  FarEnd& a() { return *ends[0]; }
  FarEnd& b() { return *ends[1]; }
  bool passes() { return plane->leg(1)->relays(); }
  void talk(int ticks) {
    for (int i = 0; i < ticks; i++) {
      a().say(marked(count_));
      b().say(marked(count_++));
      tick();
    }
  }

 private:
  int count_ = 0;
};

}  // namespace

TEST(
    "two alone in a room hear each other packet for packet, unchanged and in the tick in which they came, in one "
    "stream with the frames before") {
  for (const bool rings : {true, false}) {
    Two two(rings);
    Stream heard(two.b());
    uint16_t sequence = 0;
    uint32_t timestamp = 0;
    int same = 0;
    for (int i = 0; i < settled + 200; i++) {
      const std::vector<uint8_t> said = marked(i);
      two.a().say(said);
      two.b().say(said);
      two.tick();
      for (const RtpPacket& packet : heard.take()) {
        CHECK(sequence == 0 || packet.sequence == static_cast<uint16_t>(sequence + 1));
        CHECK(sequence == 0 || packet.timestamp == timestamp + 160);
        sequence = packet.sequence;
        timestamp = packet.timestamp;
        if (std::vector<uint8_t>(packet.payload, packet.payload + packet.payload_bytes) == said) same++;
      }
    }
    CHECK(two.passes());
    CHECK(same >= 200);
    CHECK(two.a().packets().size() >= 200);
  }
}

TEST("what is passed on does not wait for a tick") {
  for (const bool rings : {true, false}) {
    Two two(rings);
    two.now = now_of_system();
    two.talk(settled);
    CHECK(two.passes());
    (void)two.b().packets();
    constexpr int trips = 40;
    std::atomic<int> done{0};
    std::thread far([&] {
      for (int i = 0; i < trips; i++) {
        two.a().say(marked(i));
        size_t came = 0;
        for (int tries = 0; tries < 500 && came == 0; tries++) {
          pollfd wait = {two.b().fd(), POLLIN, 0};
          (void)::poll(&wait, 1, 10);
          came = two.b().packets().size();
        }
        done++;
      }
    });
    uint32_t ticks = 0;
    while (done < trips) ticks += two.plane->run().ticks;
    far.join();
    CHECK(ticks < trips);  // each would have taken one at least
  }
}

TEST("of a flood twice what anybody speaks is passed on, and two seconds at once, however often it wakes the plane") {
  for (const bool rings : {true, false}) {
    Two two(rings);
    two.now = now_of_system();
    two.talk(settled);
    CHECK(two.passes());
    Counters before;
    Counters after;
    CHECK(two.plane->counters(2, before));
    std::atomic<bool> done{false};
    std::thread flood([&] {
      while (!done) {
        two.a().say(marked(1));
        two.a().timestamp -= 160;
      }
    });
    const int64_t began_us = now_of_system().us;
    uint32_t ticks = 0;
    for (int i = 0; i < 20; i++) ticks += two.plane->run().ticks;
    const int64_t lasted_us = now_of_system().us - began_us;
    done = true;
    flood.join();
    CHECK(two.plane->counters(2, after));
    const int64_t passed = after.sent - before.sent;
    CHECK(ticks > 0 && passed > 0);
    CHECK(passed <= Relay::at_once_most + lasted_us / Relay::each_us + ticks + 1);
  }
}

TEST("who was held up for a second is passed on to the last packet, and one who floods goes on to be heard") {
  Two two;
  two.talk(settled);
  (void)two.b().packets();
  for (int i = 0; i < 50; i++) two.a().say(marked(i));
  two.tick();
  CHECK(two.b().packets().size() == 50);
  size_t heard = 0;
  for (int i = 0; i < 100; i++) {  // 50 packets a tick, for two seconds
    for (int copy = 0; copy < 50; copy++) {
      two.a().say(marked(copy));
      if (copy > 0) two.a().timestamp -= 160;
    }
    two.b().say(marked(i));
    two.tick();
    heard += two.b().packets().size();
  }
  CHECK(heard >= 200 && heard <= 300);
}

TEST("nobody hears a click when a bridge of two is made, joined by a third, left, muted or told to be quieter") {
  Two two;
  CHECK(two.open() != nullptr);
  Stream heard(two.b());
  Hum hum;
  const std::vector<uint8_t> quiet(frame_units, mulaw_silence);
  const auto talk = [&](int ticks) {
    for (int i = 0; i < ticks; i++) {
      two.a().say(hum.next());
      two.b().say(quiet);
      two.tick();
      (void)heard.take();
    }
  };
  talk(settled);
  CHECK(two.passes());
  CHECK(two.plane->join(3, room, false, 100, 100));
  CHECK(!two.passes());
  talk(settled);
  CHECK(!two.passes());
  CHECK(two.plane->leave(3));
  talk(settled);
  CHECK(two.passes());
  CHECK(two.plane->mute(1, true));
  talk(2);
  CHECK(!two.passes());
  talk(5);
  for (size_t i = heard.pcm.size() - frame_units; i < heard.pcm.size(); i++) CHECK(heard.pcm[i] == 0);
  CHECK(two.plane->mute(1, false));
  talk(settled);
  CHECK(two.passes());
  CHECK(two.plane->volume(2, false, 50));
  talk(settled);
  CHECK(!two.passes());
  CHECK(heard.steepest() < no_click);
}

TEST(
    "whoever falls silent is heard as silence after 60 ms, with timestamps that count it, and is passed on again when "
    "it talks") {
  Two two;
  two.talk(settled);
  CHECK(two.passes());
  Stream heard(two.b());
  const auto before = heard.take();
  for (int i = 0; i < 10; i++) {
    two.b().say(marked(i));
    two.tick();
  }
  CHECK(!two.passes());
  const auto meanwhile = heard.take();
  CHECK(meanwhile.size() >= 6 && meanwhile.size() <= 8);
  CHECK(meanwhile[0].sequence == static_cast<uint16_t>(before.back().sequence + 1));
  CHECK(meanwhile[0].timestamp - before.back().timestamp >= 3 * 160);
  for (size_t i = 1; i < meanwhile.size(); i++) CHECK(meanwhile[i].timestamp == meanwhile[i - 1].timestamp + 160);
  two.talk(settled);
  CHECK(two.passes());
}

TEST("a frame that follows what was passed on is marked where its timestamp leaves a gap, and only there") {
  for (const int late_ms : {0, 20, 40}) {  // how much later the frame comes than the next packet was due
    Two two;
    CHECK(two.open() != nullptr);
    two.talk(settled);
    CHECK(two.passes());
    Stream heard(two.b());
    const auto passed = heard.take();
    two.now.us += late_ms * 1000 - 10'000;
    CHECK(two.plane->join(3, room, false, 100, 100));
    two.talk(5);
    const auto mixed = heard.take();
    CHECK(mixed.size() == 5);
    CHECK(mixed[0].sequence == static_cast<uint16_t>(passed.back().sequence + 1));
    CHECK(mixed[0].timestamp - passed.back().timestamp == static_cast<uint32_t>(20 + late_ms) * 8);
    CHECK(mixed[0].marker == (late_ms > 0));
    for (size_t i = 1; i < mixed.size(); i++) {
      CHECK(!mixed[i].marker);
      CHECK(mixed[i].timestamp == mixed[i - 1].timestamp + 160);
    }
  }
}

TEST("what is lost or overtaken before a bridge of two is so after it, and no packet takes the number of a frame") {
  Two two;
  two.talk(settled);
  Stream heard(two.b());
  const uint16_t last = heard.take().back().sequence;
  two.a().sequence = static_cast<uint16_t>(two.a().sequence + 2);
  two.a().timestamp += 320;
  two.a().say(marked(1));
  two.a().sequence = static_cast<uint16_t>(two.a().sequence - 2);
  two.a().timestamp -= 320;
  two.a().say(marked(2));
  two.tick();
  const auto came = heard.take();
  CHECK(came.size() == 2);
  CHECK(came[0].sequence == static_cast<uint16_t>(last + 3) && came[1].sequence == static_cast<uint16_t>(last + 2));
  CHECK(came[0].payload[0] == 1 && came[1].payload[0] == 2);
}

TEST("who sends packets of another length is mixed, and not left out for a moment") {
  Two two;
  Stream heard(two.b());
  for (int i = 0; i < 300; i++) {
    if (i % 2 == 0) {
      std::vector<uint8_t> octets(2 * frame_units, 0x95);
      two.a().say(octets);
      two.a().timestamp += 160;
    }
    two.b().say(marked(i));
    two.tick();
    CHECK(heard.take().size() == 1);
  }
  CHECK(!two.passes());
}

TEST("who begins to send packets of several lengths in turn is mixed, and heard whole") {
  Two two;
  Stream heard(two.b());
  two.talk(settled);
  CHECK(two.passes());
  (void)heard.take();
  Hum hum;
  uint16_t sequence = 0;
  std::vector<uint8_t> waiting;
  for (int i = 0; i < 300; i++) {
    const std::vector<uint8_t> said = hum.next();
    waiting.insert(waiting.end(), said.begin(), said.end());
    if (i % 3 != 1) {  // a packet of 20 ms, then one of 40 ms
      two.a().say(waiting);
      two.a().timestamp += static_cast<uint32_t>(waiting.size() - frame_units);
      waiting.clear();
    }
    two.b().say(marked(i));
    two.tick();
    for (const RtpPacket& packet : heard.take()) {
      CHECK(sequence == 0 || packet.sequence == static_cast<uint16_t>(sequence + 1));
      sequence = packet.sequence;
    }
  }
  CHECK(!two.passes() && heard.pcm.size() >= 295 * frame_units);
  for (size_t at = 50 * frame_units; at + frame_units <= heard.pcm.size(); at += frame_units)
    CHECK(*std::max_element(&heard.pcm[at], &heard.pcm[at] + frame_units) > 6000);
}

TEST("a source that begins anew, or negotiates another codec, is mixed until it has settled") {
  Two two;
  two.talk(settled);
  CHECK(two.passes());
  two.a().ssrc = 78;
  two.a().timestamp += 1'000'000;
  two.talk(4);
  CHECK(!two.plane->leg(2)->relay().on());
  Stream heard(two.b());
  (void)heard.take();
  two.talk(settled);
  CHECK(two.plane->leg(2)->relay().on());
  const auto came = heard.take();
  for (size_t i = 1; i < came.size(); i++)
    CHECK(came[i].sequence == static_cast<uint16_t>(came[i - 1].sequence + 1) &&
          came[i].timestamp == came[i - 1].timestamp + 160);
  Negotiated agreed;
  agreed.rtp = two.b().here();
  agreed.rtcp = sidetone::test::nowhere();
  agreed.codec = Codec::pcma;
  agreed.payload_type = two.b().payload_type = 8;
  CHECK(two.plane->negotiate(2, agreed, two.now));
  two.talk(settled);
  CHECK(!two.passes());
  for (const RtpPacket& packet : heard.take()) CHECK(packet.payload_type == 8 || packet.payload_type == 0);
}

TEST("a source that sets its numbers back, or forward, is heard on in a stream whose own numbers follow each other") {
  for (const int by : {-30, 20'000}) {
    for (const bool rings : {true, false}) {
      Two two(rings);
      two.talk(settled);
      CHECK(two.passes());
      Stream heard(two.b());
      auto came = heard.take();
      for (int i = 0; i < settled; i++) {
        if (i == 5) two.a().sequence = static_cast<uint16_t>(two.a().sequence + by);
        two.talk(1);
        for (const RtpPacket& packet : heard.take()) came.push_back(packet);
      }
      CHECK(two.passes());
      for (size_t i = 1; i < came.size(); i++) {
        CHECK(came[i].sequence == static_cast<uint16_t>(came[i - 1].sequence + 1));
        CHECK(came[i].timestamp - came[i - 1].timestamp == 160 || came[i].marker);
      }
      CHECK(heard.pcm.size() >= (2 * settled - 5) * frame_units);
    }
  }
}

TEST("members of a bridge of two come, go, are closed and move to another plane at any moment") {
  for (const bool rings : {true, false}) {
    Two two(rings);
    Bench other(rings);
    CHECK(other.plane->open_room(room + 1));
    Counters counters;
    for (int round = 0; round < 12; round++) {
      two.talk(settled + round % 3);
      CHECK(two.passes());
      switch (round % 4) {
        case 0:
          CHECK(two.plane->drop(1));
          CHECK(!two.passes() && two.plane->leg(2)->relay().ending());
          break;
        case 1:
          CHECK(two.plane->leave(2));
          two.talk(2);
          break;
        case 2:
          CHECK(two.plane->move(2, other.plane->number(), two.now));
          other.now = two.now;
          other.tick();
          CHECK(other.plane->join(2, room + 1, false, 100, 100));
          other.tick();
          CHECK(other.plane->move(2, two.plane->number(), two.now));
          break;
        default:
          CHECK(two.plane->close_room(room));
          two.talk(2);
          CHECK(two.plane->open_room(room));
      }
      two.talk(1);
      for (const uint32_t leg : {1u, 2u}) CHECK(two.plane->join(leg, room, false, 100, 100));
    }
    two.talk(settled);
    CHECK(two.plane->close(1, counters, two.now));
    two.tick();
    CHECK(two.plane->close(2, counters, two.now));
    two.tick();
  }
}

TEST("whoever leaves while only one direction is passed on is held by nobody, and the other one is heard on") {
  for (const bool rings : {true, false}) {
    Two two(rings);
    two.talk(settled + 10);
    CHECK(two.passes());
    // Only A speaks, so that nothing is passed to it any more; then its stream begins anew.
    for (int i = 0; i < 10; i++) {
      two.a().say(marked(i));
      two.tick();
    }
    CHECK(!two.plane->leg(2)->relays());
    two.a().ssrc = 78;
    two.a().timestamp += 1'000'000;
    for (int i = 0; i < 4; i++) {
      two.a().say(marked(i));
      two.tick();
    }
    Counters counters;
    CHECK(two.plane->close(2, counters, two.now));
    CHECK(!two.plane->leg(1)->relays());
    for (int i = 0; i < 10; i++) {
      two.a().say(marked(i));
      two.tick();
    }
  }
}

TEST("what waits to be passed on when a leg is closed has been sent, and holds nothing of what is gone") {
  for (const bool rings : {true, false}) {
    Bench bench(rings);
    for (const uint32_t each : {room, room + 1}) {
      CHECK(bench.plane->open_room(each));
      for (int i = 0; i < 2; i++) {
        CHECK(bench.open() != nullptr);
        CHECK(bench.plane->join(static_cast<uint32_t>(bench.ends.size()), each, false, 100, 100));
      }
    }
    for (int i = 0; i < settled; i++) {
      for (const auto& end : bench.ends) end->say(marked(i));
      bench.tick();
    }
    CHECK(bench.plane->leg(1)->relays() && bench.plane->leg(3)->relays());
    (void)bench.ends[1]->packets();
    bench.ends[0]->say(marked(7));
    Counters counters;
    CHECK(bench.plane->close(3, counters, bench.now));
    CHECK(bench.plane->close(2, counters, bench.now));
    for (int i = 0; i < 3; i++) bench.tick();
    CHECK(!bench.plane->leg(1)->relays());
    size_t same = 0;
    for (const auto& said : bench.ends[1]->heard()) same += said == marked(7);
    CHECK(same <= 1);
  }
}
