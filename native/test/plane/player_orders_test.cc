// Orders to a player that come while another sound is heard, waits or has ended.
#include <algorithm>
#include <vector>

#include "plane/audio/player.h"
#include "test/check.h"
#include "test/plane/player_run.h"

namespace sidetone {
namespace {

/** A sound of one level, whose steps show every ramp. */
const std::vector<int16_t> flat(4000, 12'000);

/** Plays it as playback 1, and adds the first frames of that to `out`. */
void begin(Player& player, std::vector<int16_t>& out, int frames) {
  player.play(1, hz, 100);
  CHECK(player.feed(1, flat.data(), flat.size()));
  run(player, out, frames);
}

TEST("a play after a paused one is heard") {
  Player player;
  std::vector<int16_t> out;
  begin(player, out, 2);
  CHECK(player.pause(1));
  run(player, out, 2);
  player.play(2, hz, 100);
  CHECK(!player.paused());
  CHECK(player.feed(2, flat.data(), flat.size()));
  run(player, out, 2);
  CHECK(out.back() == 12'000);
}

TEST("a stop while a new play waits for its sound ends both") {
  Player player;
  std::vector<int16_t> out;
  begin(player, out, 2);
  player.play(2, hz, 100);
  CHECK(player.feed(2, flat.data(), flat.size()));
  player.clear();
  CHECK(!player.active() && player.playback() == 0u);
  run(player, out, 3);
  CHECK(out.back() == 0);
  CHECK(steepest(std::vector<int16_t>(out.begin() + 1, out.end())) < smooth);
}

TEST("a play replaces one that still waits, also when what was heard has run dry meanwhile") {
  Player player;
  player.play(1, hz, 100);
  CHECK(player.feed(1, flat.data(), 3 * frame));
  std::vector<int16_t> out;
  run(player, out, 2);
  player.play(2, hz, 100);
  run(player, out, 1);
  player.play(3, hz, 100);
  CHECK(player.playback() == 3u);
  CHECK(!player.feed(2, flat.data(), frame) && player.feed(3, flat.data(), flat.size()));
  run(player, out, 3);
  CHECK(player.started() && out.back() == 12'000);
}

TEST("a play that replaces a waiting one is waited for from then on, and what was heard goes on") {
  Player player;
  const std::vector<int16_t> a(30'000, 12'000);
  player.play(1, hz, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  std::vector<int16_t> out;
  run(player, out, 2);
  for (const uint32_t next : {2u, 3u}) {
    player.play(next, hz, 100);
    run(player, out, Player::wait_frames_max);
    CHECK(out.back() == 12'000);
  }
  run(player, out, 2);
  CHECK(out.back() == 0);
}

TEST(
    "a sound that waited behind another and is paused and resumed at once is not heard, and the other is heard no "
    "more") {
  Player player;
  std::vector<int16_t> out;
  begin(player, out, 2);
  player.play(2, hz, 100);
  CHECK(player.pause(2) && player.resume(2));
  run(player, out, 3);
  CHECK(out.back() == 0);
  CHECK(steepest(std::vector<int16_t>(out.begin() + 1, out.end())) < smooth);
}

TEST("an order for a playback that has been replaced changes nothing") {
  Player player;
  player.play(1, hz, 100);
  player.play(2, hz, 100);
  for (const uint32_t other : {0u, 1u, 3u}) {
    uint32_t taken = 0;
    CHECK(!player.pause(other) && !player.resume(other) && !player.set_volume(other, 10));
    CHECK(!player.seek(other, taken) && !player.feed(other, flat.data(), frame));
    player.finish(other);
  }
  CHECK(!player.paused() && player.feed(2, flat.data(), frame));
  std::vector<int16_t> out;
  run(player, out, 1);
  CHECK(out.back() == 12'000 && !player.ended());
}

TEST("a sound that was heard to its end leaves nothing behind it, and the next begins as it is") {
  Player player;
  Notices notices;
  player.play(1, hz, 100);
  CHECK(player.feed(1, flat.data(), frame));
  player.finish(1);
  std::vector<int16_t> out;
  run(player, out, 1);
  player.progress(7, {}, notices);
  CHECK(notices.back().kind == NoticeKind::playback_ended && notices.back().leg == 7 && notices.back().a == 1);
  CHECK(!player.audible());
  player.play(2, hz, 100);
  CHECK(player.feed(2, flat.data(), frame));
  run(player, out, 1);
  CHECK(out == std::vector<int16_t>(2 * frame, 12'000));
}

TEST("a play that comes when the ramp of a stop is over begins as it is") {
  Player player;
  std::vector<int16_t> out;
  begin(player, out, 1);
  player.clear();
  CHECK(player.audible());
  run(player, out, 1);
  CHECK(!player.audible());
  player.play(2, hz, 100);
  CHECK(player.feed(2, flat.data(), frame));
  out.clear();
  run(player, out, 1);
  CHECK(out == std::vector<int16_t>(frame, 12'000));
}

TEST("a new play tells its own rate before any of it is heard") {
  Player player;
  CHECK(player.rate_hz() == 8000u);
  player.play(1, 48'000, 100);
  CHECK(player.rate_hz() == 48'000u);
}

TEST("a source that is late at a moment of silence rises when it goes on") {
  Player player;
  std::vector<int16_t> a(frame, 12'000);
  std::fill(a.end() - 40, a.end(), int16_t{0});
  player.play(1, hz, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  std::vector<int16_t> out;
  run(player, out, 2);
  CHECK(player.feed(1, flat.data(), flat.size()));
  run(player, out, 2);
  CHECK(out.back() == 12'000);
  CHECK(steepest(std::vector<int16_t>(out.begin() + frame, out.end())) < smooth);
}

TEST("want of sound is counted to the millisecond, anew for each play and seek, and not behind the end") {
  Player player;
  uint32_t taken = 0;
  std::vector<int16_t> out;
  for (const uint32_t playback : {1u, 2u}) {
    player.play(playback, hz, 100);
    CHECK(player.starved_ms() == 0u);
    CHECK(player.feed(playback, flat.data(), frame + frame / 4));
    run(player, out, 3);
    CHECK(player.starved_ms() == 35u);
  }
  CHECK(player.seek(2, taken) && player.starved_ms() == 0u);
  CHECK(player.feed(2, flat.data(), frame / 4));
  player.finish(2);
  run(player, out, 3);
  CHECK(player.ended() && player.starved_ms() == 0u);
}

TEST("a replaced sound falls at the rate of the leg, where that was negotiated anew at the same moment") {
  Player player;
  const std::vector<int16_t> wide(48'000, 12'000);
  const std::vector<int16_t> quiet(frame, 0);
  player.play(1, 48'000, 100);
  CHECK(player.feed(1, wide.data(), wide.size()));
  std::vector<int16_t> out;
  run(player, out, 2, 48'000);
  player.play(2, hz, 100);
  CHECK(player.feed(2, quiet.data(), quiet.size()));  // as much as a frame is enough to begin
  out.clear();
  run(player, out, 1);
  CHECK(player.started() && out[0] > 10'000 && steepest(out) < smooth);
  CHECK(std::count(out.begin() + 40, out.end(), 0) == 120);
}

TEST("the ramp of a loud sound that reaches into another loud one is bounded") {
  for (const int16_t level : {int16_t{30'000}, int16_t{-30'000}}) {
    Player player;
    const std::vector<int16_t> loud(48'000, level);
    player.play(1, 48'000, 100);
    CHECK(player.feed(1, loud.data(), loud.size()));
    std::vector<int16_t> out;
    run(player, out, 2, 48'000);
    player.clear();
    player.play(2, hz, 100);
    CHECK(player.feed(2, loud.data(), 4000));
    out.clear();
    run(player, out, 3);  // a leg whose codec was negotiated anew meanwhile
    const int16_t bound = level > 0 ? 32'767 : -32'768;
    CHECK(std::count(out.begin(), out.end(), bound) > 10);
    for (const int16_t sample : out) CHECK((sample < 0) == (level < 0));
  }
}

}  // namespace
}  // namespace sidetone
