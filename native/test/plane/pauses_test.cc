// What a far end leaves out, on hold or in silence, and what is counted and heard of it.
#include <vector>

#include "test/check.h"
#include "test/plane/bench.h"
#include "test/plane/ear.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

struct Line : Bench {
  FarEnd* far = nullptr;
  Ear ear;

  bool begin() {
    far = open();
    if (far == nullptr) return false;
    agree(true, false);
    plane->leg(1)->listen(&ear);
    return true;
  }
  void agree(bool receive, bool holding) {
    Negotiated agreed;
    agreed.rtp = far->here();
    agreed.rtcp = nowhere();
    agreed.receive = receive;
    agreed.holding = holding;
    (void)plane->negotiate(1, agreed, now);
  }
  void say(int frames) {
    for (int i = 0; i < frames; i++) {
      far->say(std::vector<uint8_t>(frame_units, 0x80));
      far->marker = false;
      tick();
    }
  }
  Counters counters() {
    Counters counters;
    (void)plane->counters(1, counters);
    return counters;
  }
};

}  // namespace

TEST("what the far end or a relay on the way keeps back while the call is on hold is not lost") {
  Line line;
  CHECK(line.begin());
  const auto keep_back = [&](uint16_t packets) {
    line.far->sequence = static_cast<uint16_t>(line.far->sequence + packets);
    line.far->timestamp += packets * frame_units;
  };
  line.say(10);
  line.agree(false, true);
  keep_back(50);
  line.agree(true, false);
  line.say(10);
  line.agree(true, true);
  keep_back(10);
  line.say(5);  // its packets come already while we still hold it
  line.agree(true, false);
  keep_back(10);
  line.say(5);
  CHECK(line.counters().received == 30 && line.counters().lost == 0);
  keep_back(1);
  line.say(5);
  CHECK(line.counters().received == 35 && line.counters().lost == 1);
}

TEST("a talk spurt is heard from its first packet, although its timestamps left out the silence before it") {
  Line line;
  CHECK(line.begin());
  for (int spurt = 0; spurt < 4; spurt++) {
    line.far->marker = true;
    line.say(25);
    for (int i = 0; i < 20; i++) line.tick();
  }
  CHECK(line.counters().received == 100 && line.counters().late == 0 && line.ear.voiced >= 97);
}
