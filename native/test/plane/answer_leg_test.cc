#include <vector>

#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using namespace sidetone::test;

TEST("who answers is detected beside the call, once; then nobody listens to the leg any more") {
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  CHECK(!bench.plane->detect_answerer(9, 1000) && bench.plane->detect_answerer(1, 1000));
  uint32_t heard_ms = 0;
  for (int tick = 0; tick < 100; tick++) {
    far->say(std::vector<uint8_t>(frame_units, mulaw_silence));
    bench.tick();
    for (const Notice& notice : bench.notices()) {
      if (notice.kind != NoticeKind::answerer) continue;
      CHECK(heard_ms == 0 && notice.leg == 1 && notice.a == static_cast<uint32_t>(Answerer::unknown));
      heard_ms = notice.b;
    }
    Counters counters;
    CHECK(bench.plane->counters(1, counters));
    if (tick > 60) CHECK(counters.delay_us == 0);  // its packets are counted, and no longer decoded
  }
  CHECK(heard_ms == 1000);
}
