// Everyone is ticked once in 20 ms, whatever the phase.
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "plane/plane.h"
#include "test/check.h"

using namespace sidetone;

namespace {

constexpr uint32_t rooms = 6;
constexpr uint32_t first_room = 10'000;
constexpr size_t legs_of_third = 44;
constexpr uint32_t three_phases = Phases::first_legs_most + Phases::legs_most + legs_of_third;

/** A plane on virtual time with stream legs, which are numbered from 1 on and need no sockets. */
struct Crowd {
  int error = 0;
  std::unique_ptr<Plane> plane = Plane::create(60'000'000, error);
  Now now{1'000'000'000, 1'700'000'000'000'000};
  std::map<uint32_t, uint32_t> given;  // frames, by leg
  uint32_t legs = 0;

  explicit Crowd(uint32_t count) {
    while (legs < count) open();
    for (uint32_t room = first_room; room < first_room + rooms; room++) CHECK(plane->open_room(room));
  }

  void open() {
    const auto inbox = StreamInbox::open();
    StreamInbox::close(inbox.first);
    CHECK(plane->open_stream(++legs, inbox.second, StreamFormat(), StreamFormat()));
  }

  /** Counts the frames that were given since the last call; returns how many there were. */
  size_t count_frames() {
    std::vector<uint8_t> bytes(1 << 20);
    const size_t length = plane->take_frames(bytes.data(), bytes.size());
    size_t frames = 0;
    for (size_t at = 0; at < length && length <= bytes.size(); frames++) {
      uint32_t header[3];
      std::memcpy(header, &bytes[at], sizeof header);
      given[header[0]]++;
      at += sizeof header + (header[2] + 3) / 4 * 4;
    }
    return frames;
  }

  bool step() {
    const bool over = plane->step(now);
    now.us += Plane::phase_us;
    now.wall_us += Plane::phase_us;
    Notice notices[256];
    while (plane->take_notices(notices, 256) == 256) continue;
    return over;
  }
};

}  // namespace

TEST("one phase serves a few legs, and more are spread") {
  Crowd few(Phases::first_legs_most);
  CHECK(few.step());
  CHECK(few.count_frames() == Phases::first_legs_most);
  Crowd many(three_phases);
  for (const size_t legs : {Phases::first_legs_most, Phases::legs_most, legs_of_third}) {
    CHECK(many.step() == (legs == legs_of_third));
    CHECK(many.count_frames() == legs);
  }
}

TEST("more legs than phases have room for are spread evenly") {
  Crowd crowd(Phases::count * (Phases::first_legs_most + 10));
  for (size_t phase = 0; phase < Phases::count; phase++) {
    CHECK(crowd.step() == (phase + 1 == Phases::count));
    CHECK(crowd.count_frames() == Phases::first_legs_most + 10);
  }
}

TEST("a room is ticked in the phase of its first member, where that has room") {
  Crowd crowd(three_phases);
  const uint32_t first = Phases::first_legs_most + Phases::legs_most + 1;  // of the third phase
  CHECK(crowd.plane->join(first, first_room, false, 100, 100));
  CHECK(crowd.plane->join(1, first_room, false, 100, 100));
  CHECK(!crowd.step());
  CHECK(crowd.count_frames() == Phases::first_legs_most - 1);
  CHECK(!crowd.step());
  CHECK(crowd.step());
  (void)crowd.count_frames();
  CHECK(crowd.given[first] == 1 && crowd.given[1] == 1);
}

TEST("whoever comes and goes between phases, every leg is given one frame in each tick") {
  std::mt19937 random(20);
  Crowd crowd(400);
  const auto any = [&random](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  uint32_t changed = 0;
  for (uint32_t tick = 1; tick <= 300; tick++) {
    for (bool over = false; !over;) {
      for (uint32_t change = any(4); change > 0; change--) {
        const uint32_t leg = 1 + any(crowd.legs);
        const uint32_t what = any(8);
        if (what == 0) changed += crowd.plane->leave(leg);
        else if (what == 1) changed += crowd.plane->drop(leg);
        else changed += crowd.plane->join(leg, first_room + any(rooms), false, 100, 100);
      }
      over = crowd.step();
    }
    (void)crowd.count_frames();
    for (uint32_t leg = 1; leg <= crowd.legs; leg++) CHECK(crowd.given[leg] == tick);
  }
  CHECK(changed > 500);
}

TEST("a leg that moves twice within a tick is given one frame in it, and so is one that leaves after its move") {
  for (const bool leaves : {false, true}) {
    Crowd crowd(three_phases);
    const uint32_t second = Phases::first_legs_most + 1;
    CHECK(crowd.plane->join(second, first_room, false, 100, 100));            // a room of the second phase
    CHECK(crowd.plane->join(three_phases, first_room + 1, false, 100, 100));  // and one of the third
    CHECK(!crowd.step());
    CHECK(crowd.plane->join(1, first_room, false, 100, 100));  // which was ticked in the first
    CHECK(leaves ? crowd.plane->drop(1) : crowd.plane->join(1, first_room + 1, false, 100, 100));
    while (!crowd.step()) continue;
    (void)crowd.count_frames();
    CHECK(crowd.given[1] == 1);
    while (!crowd.step()) continue;
    (void)crowd.count_frames();
    CHECK(crowd.given[1] == 2);
  }
}

TEST("phases that nobody is in any more are left out") {
  Crowd crowd(three_phases);
  CHECK(!crowd.step() && !crowd.step() && crowd.step());
  Counters counters;
  for (uint32_t leg = 1; leg <= Phases::first_legs_most + Phases::legs_most; leg++)
    CHECK(crowd.plane->close(leg, counters, crowd.now));
  (void)crowd.count_frames();
  CHECK(!crowd.step());  // of the rooms
  CHECK(crowd.count_frames() == 0);
  CHECK(crowd.step());
  CHECK(crowd.count_frames() == legs_of_third);
}

TEST("a plane that runs by itself gives every leg a frame every 20 ms, and its phases to script one by one") {
  Crowd crowd(300);
  const int64_t began = now_of_system().us;
  uint32_t ticks = 0;
  while (ticks < 10) {
    ticks += crowd.plane->run().ticks;
    (void)crowd.count_frames();
    Notice notices[16];
    (void)crowd.plane->take_notices(notices, 16);
  }
  CHECK(now_of_system().us - began >= 9 * Plane::tick_us);
  for (uint32_t leg = 1; leg <= crowd.legs; leg++) {
    const uint32_t frames = crowd.given[leg];
    CHECK(frames == ticks || frames == ticks + 1);  // after a stall it may have begun another one
  }
}
