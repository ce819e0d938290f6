#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using test::Bench;
using test::FarEnd;

namespace {

constexpr uint32_t room = 100;

/** Leg 1 is a call, leg 2 the pipe to another node, alone in a room. */
struct Piped : Bench {
  explicit Piped(Codec codec = Codec::pcmu, bool at_once = true) {
    CHECK(plane->open_room(room) && open(codec) != nullptr && open(codec) != nullptr);
    CHECK(plane->pipe(2, own_ssrc, their_ssrc, at_once));
    ends[1]->ssrc = their_ssrc;
    for (const uint32_t leg : {1u, 2u}) CHECK(plane->join(leg, room, false, 100, 100));
  }
  FarEnd& call() { return *ends[0]; }
  FarEnd& node() { return *ends[1]; }
  size_t silences() const {
    size_t count = 0;
    for (const Notice& notice : notices()) count += notice.kind == NoticeKind::pipe_silent && notice.leg == 2;
    return count;
  }

  static constexpr uint32_t own_ssrc = 0x01020304;
  static constexpr uint32_t their_ssrc = 0x05060708;
};

const std::vector<uint8_t> said(int n) { return std::vector<uint8_t>(frame_units, static_cast<uint8_t>(0x80 | n)); }

}  // namespace

TEST("the packets of a call leave through its pipe undecoded within a few ticks, under the SSRC that was agreed on") {
  for (const Codec codec : {Codec::pcmu, Codec::pcma, Codec::g722}) {
    Piped piped(codec);
    int same = 0;
    for (int i = 0; i < 30; i++) {
      piped.call().say(said(i));
      piped.node().say(said(i));
      piped.tick();
      for (const auto& bytes : piped.node().packets()) {
        RtpPacket packet;
        CHECK(rtp_parse(bytes.data(), bytes.size(), packet) && packet.ssrc == Piped::own_ssrc);
        if (std::vector<uint8_t>(packet.payload, packet.payload + packet.payload_bytes) == said(i)) same++;
      }
    }
    CHECK(same >= 24);
    CHECK(piped.plane->leg(1)->relays() && piped.plane->leg(2)->relays());
  }
}

TEST("a pipe hears nobody but the SSRC that was agreed on, from the address that was agreed on") {
  Piped piped;
  piped.node().ssrc = 9;
  for (int i = 0; i < 20; i++) {
    piped.node().say(said(i));
    piped.tick();
  }
  Counters counters;
  CHECK(piped.plane->counters(2, counters) && counters.received == 0);
  piped.node().ssrc = Piped::their_ssrc;
  FarEnd stranger;
  stranger.leg = piped.node().leg;
  stranger.ssrc = Piped::their_ssrc;
  for (int i = 0; i < 20; i++) {
    stranger.say(said(i));
    piped.tick();
  }
  CHECK(piped.plane->counters(2, counters) && counters.received == 0);
  piped.node().say(said(1));
  piped.tick();
  CHECK(piped.plane->counters(2, counters) && counters.received == 1);
}

TEST("a pipe on which nothing comes for 300 ms tells so once, and again after it was heard again") {
  Piped piped;
  for (int i = 0; i < 10; i++) {
    piped.node().say(said(i));
    piped.tick();
  }
  for (int i = 0; i < 14; i++) piped.tick();
  CHECK(piped.silences() == 0);
  for (int i = 0; i < 40; i++) piped.tick();
  CHECK(piped.silences() == 1);
  piped.node().say(said(1));
  for (int i = 0; i < 40; i++) piped.tick();
  CHECK(piped.silences() == 1);
}

TEST("a call that stalls for 200 ms and makes up for it leaves through its pipe as it came, with nothing between") {
  Piped piped;
  std::vector<uint32_t> times;
  const auto tick = [&] {
    piped.tick();
    size_t came = 0;
    for (const auto& bytes : piped.node().packets()) {
      RtpPacket packet;
      if (!rtp_parse(bytes.data(), bytes.size(), packet)) continue;
      times.push_back(packet.timestamp);
      came++;
    }
    return came;
  };
  for (int i = 0; i < 20; i++) {
    piped.call().say(said(i));
    piped.node().say(said(i));
    (void)tick();
  }
  size_t between = 0;
  for (int i = 0; i < 10; i++) {
    piped.node().say(said(i));
    between += tick();
  }
  CHECK(between == 0);
  for (int i = 0; i < 10; i++) piped.call().say(said(i));
  const uint32_t before = times.back();
  CHECK(tick() == 10);
  CHECK(times.back() - before == 10 * frame_units);
  // A call that says nothing for longer is a frame of silence each tick again.
  size_t own = 0;
  for (int i = 0; i < 30; i++) own += tick();
  CHECK(own > 10);
}

TEST("a pipe marks the packets at which calls and own frames take turns, and no others, whatever the call marks") {
  Piped piped;
  std::vector<bool> marked;
  const auto tick = [&](bool says) {
    piped.call().marker = true;
    if (says) piped.call().say(said(1));
    piped.node().say(said(1));
    piped.tick();
    for (const auto& bytes : piped.node().packets()) {
      RtpPacket packet;
      if (rtp_parse(bytes.data(), bytes.size(), packet)) marked.push_back(packet.marker);
    }
  };
  const auto turns = [&] { return std::count(marked.begin(), marked.end(), true); };
  for (int i = 0; i < 20; i++) tick(true);
  CHECK(marked.size() > 15);
  const auto first = turns();
  CHECK(first >= 1 && first <= 2);  // the first frame of all, and the first packet that is passed on
  for (int i = 0; i < 40; i++) tick(false);
  CHECK(turns() == first + 1);
  for (int i = 0; i < 20; i++) tick(true);
  CHECK(turns() == first + 2);
}

TEST("a call whose source begins anew is led over to what follows in its pipe, without a click") {
  Piped piped;
  std::vector<int16_t> tone(frame_units);  // two periods, which begin and end at a peak
  for (size_t i = 0; i < tone.size(); i++)
    tone[i] = static_cast<int16_t>(8000 * std::cos(2 * M_PI * static_cast<double>(i) / 80));
  Encoder encoder;
  Decoder decoder;
  std::vector<int16_t> heard;
  for (int i = 0; i < 80; i++) {
    if (i == 40) {  // as a call that is transferred to somebody who listens
      piped.call().ssrc++;
      tone.assign(frame_units, 0);
    }
    say_coded(piped.call(), Codec::pcmu, encoder, tone);
    piped.node().say(said(0x7f));
    piped.tick();
    hear_coded(piped.node(), Codec::pcmu, decoder, heard);
  }
  CHECK(piped.plane->leg(1)->relays());
  int steepest = 0;
  for (size_t i = 1; i < heard.size(); i++) steepest = std::max(steepest, std::abs(heard[i] - heard[i - 1]));
  CHECK(steepest < 1500);  // the tone's own step, its ramp's, and two of mu-law
}
