// The player: no gap and no click where sounds follow, stop, pause, jump or replace each other.
#include <cmath>
#include <cstdlib>
#include <vector>

#include "plane/audio/player.h"
#include "test/check.h"
#include "test/plane/player_run.h"

namespace sidetone {
namespace {

std::vector<int16_t> sine(double pitch, size_t count, double phase = 0) {
  std::vector<int16_t> out(count);
  for (size_t i = 0; i < count; i++)
    out[i] = static_cast<int16_t>(
        std::lrint(12000 * std::sin(2 * 3.14159265358979 * pitch * static_cast<double>(i) / hz + phase)));
  return out;
}

size_t silences(const std::vector<int16_t>& pcm, size_t from) {
  size_t count = 0;
  for (size_t i = from; i < pcm.size(); i++) count += std::abs(pcm[i]) < 200;
  return count;
}

TEST("what is fed is what is heard") {
  Player player;
  const auto pcm = sine(300, 1600);
  player.play(1, hz, 100);
  CHECK(player.feed(1, pcm.data(), pcm.size()));
  CHECK(!player.started());
  player.finish(1);
  std::vector<int16_t> out;
  run(player, out, 10);
  CHECK(player.started());
  CHECK(player.ended());
  CHECK(out == pcm);
}

TEST("a new play waits for its sound and replaces the old without gap or click") {
  Player player;
  const auto a = sine(300, 8000);
  const auto b = sine(250, 8000, 1.0);
  player.play(1, hz, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  std::vector<int16_t> out;
  run(player, out, 5);
  player.play(2, hz, 100);
  CHECK(player.playback() == 2u);
  CHECK(!player.started());
  run(player, out, 7);
  CHECK(!player.started());
  CHECK(!player.feed(1, a.data(), a.size()));
  CHECK(player.feed(2, b.data(), b.size()));
  run(player, out, 5);
  CHECK(player.started());
  CHECK(steepest(out) < smooth);
  CHECK(silences(out, 0) < out.size() / 20);
  CHECK(out[13 * frame] == b[frame]);
}

TEST("a new play without sound ends the old one in the end") {
  Player player;
  const auto a = sine(300, 30000);
  player.play(1, hz, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  std::vector<int16_t> out;
  run(player, out, 5);
  player.play(2, hz, 100);
  run(player, out, Player::wait_frames_max + 3);
  for (size_t i = out.size() - 2 * frame; i < out.size(); i++) CHECK(out[i] == 0);
  CHECK(steepest(out) < smooth);
}

TEST("stop pause and resume are ramps and pause keeps the place") {
  Player player;
  const auto a = sine(300, 8000);
  player.play(1, hz, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  std::vector<int16_t> out;
  run(player, out, 5);
  CHECK(player.pause(1));
  CHECK(player.pause(1));
  run(player, out, 5);
  CHECK(!player.ended());
  for (size_t i = 6 * frame; i < 10 * frame; i++) CHECK(out[i] == 0);
  CHECK(!player.resume(2));
  CHECK(player.resume(1));
  run(player, out, 5);
  CHECK(out[10 * frame + 41] == a[5 * frame + 41]);
  CHECK(out[14 * frame] == a[9 * frame]);
  player.clear();
  CHECK(!player.active());
  run(player, out, 2);
  CHECK(out.back() == 0);
  CHECK(steepest(out) < smooth);
}

TEST("seek tells how far it was and hears on until the other place is there") {
  Player player;
  const auto a = sine(300, 16000);
  player.play(1, hz, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  std::vector<int16_t> out;
  run(player, out, 5);
  uint32_t taken = 0;
  CHECK(!player.seek(2, taken));
  CHECK(player.seek(1, taken));
  CHECK(taken == 5 * 160u);
  run(player, out, 3);
  CHECK(player.feed(1, a.data() + 4000, 4000));
  player.finish(1);
  run(player, out, 3);
  CHECK(player.started());
  CHECK(out[9 * frame] == a[4000 + frame]);
  CHECK(steepest(out) < smooth);
  CHECK(silences(out, 0) < out.size() / 20);
  // Twice before anything comes: the second asks from the first.
  CHECK(player.seek(1, taken));
  CHECK(player.seek(1, taken));
  CHECK(taken == 0u);
  player.finish(1);
  CHECK(player.ended());
}

TEST("seek while paused stays paused") {
  Player player;
  const auto a = sine(300, 8000);
  player.play(1, hz, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  std::vector<int16_t> out;
  run(player, out, 2);
  CHECK(player.pause(1));
  run(player, out, 1);
  uint32_t taken = 0;
  CHECK(player.seek(1, taken));
  CHECK(taken == 320u);
  CHECK(player.feed(1, a.data() + 2000, 2000));
  out.clear();
  run(player, out, 3);
  for (const int16_t sample : out) CHECK(sample == 0);
  CHECK(player.resume(1));
  out.clear();
  run(player, out, 2);
  CHECK(out[100] == a[2100]);
}

TEST("silence for want of sound is counted but not what is before or after") {
  Player player;
  const auto a = sine(300, 800);
  player.play(1, hz, 100);
  std::vector<int16_t> out;
  run(player, out, 5);
  CHECK(player.starved_ms() == 0u);
  CHECK(player.feed(1, a.data(), a.size()));
  CHECK(player.hungry({}));
  CHECK(!player.hungry({}));
  run(player, out, 10);
  CHECK(player.starved_ms() == 100u);
  CHECK(player.pause(1));
  run(player, out, 5);
  CHECK(player.starved_ms() == 100u);
}

TEST("players that can wait ask for sound in the same ticks, and one that cannot asks at once") {
  const auto a = sine(300, hz);
  std::vector<int> asked;
  for (const int begun : {1, 3, 7}) {
    Player player;
    player.play(1, hz, 100);
    CHECK(player.feed(1, a.data(), hz));
    for (int tick = begun;; tick++) {
      int16_t out[frame];
      player.frame(out, frame, hz);
      if (!player.hungry({tick * 20'000, 0})) continue;
      asked.push_back(tick);
      break;
    }
    CHECK(player.queued_ms() >= 800);
  }
  CHECK(asked[0] == 10 && asked[1] == 10 && asked[2] == 10);
  Player poor;
  poor.play(1, hz, 100);
  CHECK(poor.feed(1, a.data(), hz / 2 - 1));
  CHECK(poor.hungry({60'000, 0}));
}

TEST("a source that is too slow falls silent and rises again over a ramp, wherever in a frame it runs dry") {
  for (const size_t piece : {size_t{800}, size_t{830}, size_t{950}}) {
    Player player;
    const auto a = sine(300, 8000, 1.2);
    player.play(1, hz, 100);
    std::vector<int16_t> out;
    run(player, out, 2);  // nothing has come yet, and the sound begins as it is
    for (size_t at = 0; at + piece <= a.size(); at += piece) {
      CHECK(player.feed(1, a.data() + at, piece));
      run(player, out, 8);
      CHECK(out.back() == 0);
    }
    CHECK(out[2 * frame] == a[0]);
    CHECK(steepest(std::vector<int16_t>(out.begin() + 2 * frame, out.end())) < smooth);
    CHECK(silences(out, 0) < out.size() / 2);
  }
}

TEST("a play that replaces one that has run dry begins without a click") {
  Player player;
  const auto a = sine(300, 800, 1.2);
  player.play(1, hz, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  std::vector<int16_t> out;
  run(player, out, 4);
  player.play(2, hz, 100);
  run(player, out, 4);
  CHECK(player.feed(2, a.data(), a.size()));
  run(player, out, 3);
  CHECK(player.started());
  CHECK(steepest(std::vector<int16_t>(out.begin() + 1, out.end())) < smooth);
}

TEST("a play or seek that comes at the last samples of a live sound ends that over a ramp, and begins over one") {
  for (const size_t left : {size_t{0}, size_t{1}, size_t{7}}) {
    for (const bool is_seek : {false, true}) {
      Player player;
      const std::vector<int16_t> a(2 * frame + left, 12'000);
      const std::vector<int16_t> b(4 * frame, -12'000);
      player.play(1, hz, 100);
      CHECK(player.feed(1, a.data(), a.size()));
      std::vector<int16_t> out;
      run(player, out, 2);
      uint32_t taken = 0;
      if (is_seek) CHECK(player.seek(1, taken));
      else player.play(2, hz, 100);
      CHECK(player.feed(player.playback(), b.data(), b.size()));
      run(player, out, 2);
      CHECK(out[2 * frame - 1] == 12'000 && out[3 * frame] == -12'000);
      CHECK(steepest(out) < smooth);
    }
  }
}

TEST("a play that replaces a converted sound whose queue is empty, although its end is yet to be heard, is a ramp") {
  Player player;
  const std::vector<int16_t> a(48 * 44, 12'000);  // two frames and 4 ms
  const std::vector<int16_t> b(2 * frame, -12'000);
  player.play(1, 48'000, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  player.finish(1);
  std::vector<int16_t> out;
  run(player, out, 2);
  CHECK(player.queued_ms() == 0 && !player.ended());
  player.play(2, hz, 100);
  CHECK(player.feed(2, b.data(), b.size()));
  run(player, out, 2);
  CHECK(out.back() == -12'000);
  CHECK(steepest(std::vector<int16_t>(out.begin() + frame, out.end())) < smooth);
}

TEST("a change of volume is a ramp of 5 ms, also where another sound follows at once") {
  for (const bool is_replaced : {false, true}) {
    Player player;
    const std::vector<int16_t> flat(8000, 10000);
    player.play(1, hz, 20);
    CHECK(player.feed(1, flat.data(), flat.size()));
    std::vector<int16_t> out;
    run(player, out, 2);
    for (const int32_t percent : {200, 20, 100, 0, 150}) {
      CHECK(player.set_volume(1, percent));
      if (is_replaced && percent == 150) player.clear();
      run(player, out, 2);
      if (!is_replaced) CHECK(out.back() == 100 * percent);
    }
    CHECK(out[0] == 2000);  // the first sample of a playback is as loud as the others
    CHECK(steepest(out) <= 18'000 / 40 + 1);
  }
}

TEST("a volume that is set before the sound begins is that of its first sample") {
  Player player;
  const std::vector<int16_t> flat(800, 10000);
  player.play(1, hz, 200);
  CHECK(player.set_volume(1, 50));
  CHECK(player.feed(1, flat.data(), flat.size()));
  std::vector<int16_t> out;
  run(player, out, 1);
  CHECK(out[0] == 5000);
}

TEST("a change of rate in the middle changes neither the sound nor its place, there and back") {
  for (const uint32_t source_hz : {8000u, 16'000u, 48'000u}) {
    Player player;
    const auto exact = [](double seconds) { return 12000 * std::sin(2 * 3.14159265358979 * 300 * seconds + 0.5); };
    std::vector<int16_t> a(source_hz * 2);
    for (size_t i = 0; i < a.size(); i++)
      a[i] = static_cast<int16_t>(std::lrint(exact(static_cast<double>(i) / source_hz)));
    player.play(1, source_hz, 100);
    const size_t half = a.size() / 2;
    CHECK(player.feed(1, a.data(), half));
    double seconds = 0;
    for (const uint32_t rate : {8000u, 16'000u, 48'000u, 24'000u, 8000u, 48'000u, 8000u}) {
      if (rate == 24'000u) CHECK(player.feed(1, a.data() + half, half));
      std::vector<int16_t> out;
      run(player, out, 5, rate);
      for (size_t i = 0; i < out.size(); i++, seconds += 1.0 / rate)
        CHECK(std::fabs(out[i] - exact(seconds)) < 12000 * (seconds < 0.005 ? 0.03 : 0.008));
    }
    CHECK(player.pause(1));
    std::vector<int16_t> out;
    run(player, out, 2, 16'000);
    CHECK(player.resume(1));
    run(player, out, 5, 16'000);
    CHECK(steepest(out) < smooth);
  }
}

TEST("a sound that is read at another rate is heard to its last sample") {
  for (const uint32_t rate : {16'000u, 48'000u}) {
    Player player;
    const auto a = sine(300, 8000 / 10 * 3);
    player.play(1, hz, 100);
    CHECK(player.feed(1, a.data(), a.size()));
    player.finish(1);
    std::vector<int16_t> out;
    while (!player.ended()) run(player, out, 1, rate);
    CHECK(out.size() >= rate / 10 * 3 && out.size() <= rate / 10 * 3 + rate / 50);
    CHECK(silences(out, rate / 10 * 3 - rate / 250) < out.size() / 10);
  }
}

TEST("a change of rate behind the last sample repeats nothing") {
  Player player;
  std::vector<int16_t> a(48'000 / 50 * 3 + 3);  // as many as give half a sample too much at 8 kHz
  for (size_t i = 0; i < a.size(); i++) a[i] = i % 2 == 0 ? 3000 : 3001;
  player.play(1, 48'000, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  player.finish(1);
  std::vector<int16_t> out;
  run(player, out, 4);
  CHECK(player.ended() && std::abs(out[480] - 3000) < 30 && out[481] == 0);
  out.clear();
  run(player, out, 2, 48'000);
  CHECK(silences(out, 0) == out.size());
}

}  // namespace
}  // namespace sidetone
