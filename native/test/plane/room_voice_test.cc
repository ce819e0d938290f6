// The voices of a Room (contract §4): when a member counts as talking, and when no longer.
#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

/** 20 ms of a loud sound: mu-law octets of half the full scale, of either sign in turn. */
std::vector<uint8_t> loud() {
  std::vector<uint8_t> octets(frame_units);
  for (size_t i = 0; i < octets.size(); i++) octets[i] = i / 4 % 2 == 0 ? 0x8f : 0x0f;
  return octets;
}

/** Tells when a member of a Room begins and ceases to talk, as (tick, talking), over so many ticks. `act` comes before
 * each tick. */
template <typename Act>
std::vector<std::pair<int, uint32_t>> voices(int ticks, Act act) {
  Bench bench;
  std::vector<std::pair<int, uint32_t>> told;
  if (!bench.plane->open_room(100)) return told;
  FarEnd& far = *bench.open();
  if (!bench.plane->join(1, 100, false, 100, 100) || !bench.plane->detect_voices(100, true)) return told;
  for (int tick = 0; tick < ticks; tick++) {
    act(tick, far, *bench.plane);
    bench.tick();
    for (const Notice& notice : bench.notices()) {
      if (notice.kind == NoticeKind::voice) told.emplace_back(tick, notice.a);
    }
  }
  return told;
}

}  // namespace

TEST("voices are told after 100 ms of sound and 500 ms of silence; muted members and those that leave have none") {
  const auto told = voices(400, [](int tick, FarEnd& far, Plane& plane) {
    const bool sounds = (tick >= 50 && tick < 150) || tick >= 250;
    far.say(sounds ? loud() : std::vector<uint8_t>(frame_units, tick % 2 == 0 ? 0xff : 0xfe));
    if (tick == 300) (void)plane.mute(1, true);
    if (tick == 340) (void)plane.mute(1, false);
    if (tick == 380) (void)plane.leave(1);
  });
  CHECK(told.size() == 6);
  const int expected[] = {50, 150, 250, 300, 340, 380};
  for (size_t i = 0; i < 6; i++) {
    CHECK(told[i].second == (i % 2 == 0 ? 1u : 0u));
    const int late = told[i].first - expected[i];
    // The jitter buffer takes one or two frames, the onset four more and the release 24. Muting and leaving take none.
    if (i == 3 || i == 5) CHECK(late >= 0 && late <= 1);
    else if (i == 1) CHECK(late >= 25 && late <= 30);
    else CHECK(late >= 4 && late <= 7);
  }
}

TEST("a burst of 80 ms is no voice, and a member whose packets stop while it talks is silent after 1 s") {
  const auto told = voices(300, [](int tick, FarEnd& far, Plane&) {
    if ((tick >= 50 && tick < 54) || (tick >= 100 && tick < 200)) far.say(loud());
    else if (tick < 100) far.say(std::vector<uint8_t>(frame_units, 0xff));
  });
  CHECK(told.size() == 2 && told[0].first >= 104 && told[0].second == 1);
  // What the jitter buffer has, and conceals, is heard before the second begins.
  CHECK(told[1].second == 0 && told[1].first >= 249 && told[1].first <= 262);
}
