#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

#include "plane/leg/playout.h"
#include "test/check.h"

using namespace sidetone;

namespace {

constexpr double pi = 3.14159265358979323846;
constexpr int64_t ms = 1000;
constexpr uint32_t stream_first = 0xffff0000;  // the timestamp of the first packet, which is sent at 0

struct Packet {
  uint32_t timestamp;
  int64_t arrival_us;
  std::vector<uint8_t> payload;
};

struct Run {
  std::vector<int16_t> heard;
  std::vector<int64_t> delay_us;  // at each tick where something is heard
  std::vector<int64_t> age_us;    // how long ago what is heard was sent, at each tick
  uint32_t concealed = 0;
  uint32_t late = 0;
};

/** A seeded generator: the same bad network every time. */
struct Dice {
  uint64_t state = 88172645463325252ull;
  double roll() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<double>(state >> 11) / 9007199254740992.0;
  }
};

int16_t wave(uint32_t at) {
  return static_cast<int16_t>(8000 * std::sin(2 * pi * 400 * at / 8000.0) +
                              3000 * std::sin(2 * pi * 130 * at / 8000.0));
}

std::vector<uint8_t> frame(uint32_t timestamp, size_t units = 160) {
  std::vector<int16_t> pcm(units);
  for (size_t i = 0; i < units; i++) pcm[i] = wave(timestamp + static_cast<uint32_t>(i));
  std::vector<uint8_t> octets(units);
  mulaw_encode(pcm.data(), octets.data(), units);
  return octets;
}

/** `count` packets sent every `period_us`, each `delay(i)` us underway; a negative delay loses it. */
std::vector<Packet> stream(int count, const std::function<int64_t(int)>& delay, int64_t period_us = 20 * ms,
                           uint32_t first = stream_first) {
  std::vector<Packet> packets;
  for (int i = 0; i < count; i++) {
    const int64_t d = delay(i);
    const uint32_t timestamp = first + static_cast<uint32_t>(i) * 160;
    if (d >= 0) packets.push_back({timestamp, i * period_us + d, frame(timestamp)});
  }
  return packets;
}

/** Plays `packets` to a listener whose ticks come every 20 ms from `phase_us` on; there are none from the `away`th to
 * the `back`th. */
Run play(std::vector<Packet> packets, int ticks, int64_t phase_us = 7 * ms, int away = 0, int back = 0) {
  std::stable_sort(packets.begin(), packets.end(),
                   [](const Packet& a, const Packet& b) { return a.arrival_us < b.arrival_us; });
  Playout playout(Codec::pcmu);
  Run run;
  size_t next = 0;
  for (int tick = 0; tick < ticks; tick++) {
    const int64_t now = phase_us + tick * 20 * ms;
    while (next < packets.size() && packets[next].arrival_us <= now) {
      const Packet& packet = packets[next++];
      (void)playout.jitter().insert(packet.timestamp, packet.payload.data(), packet.payload.size(), packet.arrival_us);
    }
    if (tick >= away && tick < back) continue;
    int16_t out[frame_samples_max];
    bool heard = false;
    const int64_t next_us = static_cast<int32_t>(playout.jitter().next() - stream_first) * JitterBuffer::unit_us;
    const int64_t slack_us = playout.jitter().slack_us(now);
    const size_t count = playout.frame(now, out, heard);
    run.age_us.push_back(now - next_us + playout.delay_us() - slack_us);  // what is queued was sent before the next
    if (heard) run.delay_us.push_back(playout.delay_us());
    run.heard.insert(run.heard.end(), out, out + count);
  }
  run.concealed = playout.concealed_frames();
  run.late = playout.jitter().late();
  return run;
}

/** How many of the heard samples, from the first sound on, are the decoded stream itself, in order. */
size_t exact_samples(const Run& run, uint32_t first) {
  size_t start = 0;
  while (start < run.heard.size() && run.heard[start] == 0) start++;
  std::vector<int16_t> sent(run.heard.size() + 320);
  for (size_t i = 0; i < sent.size(); i += 160) {
    const std::vector<uint8_t> octets = frame(first + static_cast<uint32_t>(i));
    const size_t count = std::min<size_t>(160, sent.size() - i);
    mulaw_decode(octets.data(), &sent[i], count);
  }
  size_t skip = 0;
  while (skip < 160 && sent[skip] == 0) skip++;
  size_t exact = 0;
  while (start + exact < run.heard.size() && skip + exact < sent.size() &&
         run.heard[start + exact] == sent[skip + exact])
    exact++;
  return exact;
}

int64_t worst(const std::vector<int64_t>& values, size_t from, size_t to) {
  int64_t most = 0;
  for (size_t i = from; i < to && i < values.size(); i++) most = std::max(most, values[i]);
  return most;
}

/** The sharpest bend of a sound between two of its samples: what a click is heard by. */
int32_t sharpest(const std::vector<int16_t>& pcm, size_t from, size_t to) {
  int32_t most = 0;
  for (size_t i = from + 1; i + 1 < to; i++) most = std::max(most, std::abs(pcm[i + 1] - 2 * pcm[i] + pcm[i - 1]));
  return most;
}

}  // namespace

TEST(
    "on a clean network nothing is invented, whatever the phase, and what is heard is behind by that phase and 1 to "
    "1.3 ms") {
  int64_t sum = 0;
  for (int phase = 0; phase < 20; phase++) {
    const Run run = play(stream(1200, [](int) { return 3 * ms; }), 1200, phase * ms + 500);
    CHECK(run.concealed == 0 && run.late == 0);
    const int64_t behind = worst(run.delay_us, 900, run.delay_us.size());
    CHECK(behind >= 1 * ms && behind < 21'300 && worst(run.delay_us, 0, 900) <= 26 * ms);
    // Every sample is heard once, unchanged, if no frame had to go for the caution of the beginning.
    if (phase < 4 || phase > 7) CHECK(exact_samples(run, 0xffff0000) > 1190 * 160);
    sum += behind;
  }
  CHECK(sum / 20 < 12 * ms + 200);
}

TEST("packets of 10, 30, 40 and 60 ms are heard whole but for the first, at most 34 ms behind") {
  for (const size_t units : {80, 240, 320, 480}) {
    for (int phase = 0; phase < 20; phase += 3) {
      std::vector<Packet> packets;
      for (uint32_t at = 0; at < 160'000; at += static_cast<uint32_t>(units))
        packets.push_back({at, at * 125 + 3 * ms, frame(at, units)});
      const Run run = play(packets, 1000, phase * ms + 500);
      CHECK(run.late <= 1 && run.concealed <= 2);  // where a frame needs two packets, until that is known
      CHECK(worst(run.delay_us, 900, run.delay_us.size()) <= 34 * ms);
    }
  }
}

TEST("a jitter of 40 ms and packets held back each second for 60 are in time once they are known, at any phase") {
  for (int phase = 0; phase < 20; phase += 3) {
    Dice dice;
    const Run jittery =
        play(stream(3000, [&](int) { return static_cast<int64_t>(dice.roll() * 40 * ms); }), 3000, phase * ms);
    CHECK(jittery.concealed < 12 && worst(jittery.delay_us, 500, jittery.delay_us.size()) <= 72 * ms);
    const Run bursty =
        play(stream(3000, [](int i) { return i % 50 < 3 ? (3 - i % 50) * 20 * ms : int64_t{0}; }), 3000, phase * ms);
    CHECK(bursty.concealed < 12 && worst(bursty.delay_us, 500, bursty.delay_us.size()) <= 96 * ms);
  }
}

TEST("a packet that is late now and then is concealed, and the delay does not grow for it") {
  const Run run = play(stream(4000, [](int i) { return i % 700 == 650 ? 90 * ms : 3 * ms; }), 4000);
  CHECK(run.concealed == 5 && run.late == 5);
  CHECK(worst(run.delay_us, 700, run.delay_us.size()) <= 23 * ms);
}

TEST("when a bad network becomes a good one the delay goes back to that of a good one within a minute") {
  Dice dice;
  const Run run = play(
      stream(4500, [&](int i) { return i < 1000 ? static_cast<int64_t>(dice.roll() * 60 * ms) : int64_t{0}; }), 4500);
  CHECK(worst(run.delay_us, 500, 1000) > 50 * ms);
  CHECK(worst(run.delay_us, 4000, run.delay_us.size()) <= 23 * ms);
}

TEST("a path that grows longer by 50 ms for good costs at most seven frames") {
  for (int phase = 0; phase < 20; phase += 3) {
    const Run run = play(stream(1000, [](int i) { return i < 500 ? 3 * ms : 53 * ms; }), 1000, phase * ms);
    CHECK(run.concealed <= 7 && run.late <= 4);
  }
}

namespace {

constexpr int stepped = 1000;  // the packet from which on the path is longer
constexpr int phases = 20;

/** A call whose path grows longer by `step` once; a pause of the far end is the same. */
Run step_of(int64_t step, int64_t phase_us, double jitter_us = 0) {
  Dice dice;
  const auto delay = [&](int i) {
    return 103 * ms + (i < stepped ? 0 : step) + static_cast<int64_t>(dice.roll() * jitter_us);
  };
  return play(stream(3200, delay), 3200, phase_us);
}

/** The time by which sound was put off in all, from the step on, in microseconds. */
int64_t put_off(const Run& run) {
  int64_t sum = 0;
  for (size_t i = stepped; i < run.age_us.size(); i++) sum += std::max<int64_t>(0, run.age_us[i] - run.age_us[i - 1]);
  return sum;
}

}  // namespace

TEST("a pause of the far end, or a path that grows longer, costs its own length once") {
  for (const int64_t step : {0 * ms, 40 * ms, 100 * ms, 180 * ms}) {
    int64_t moved = 0;
    for (int phase = 0; phase < phases; phase++) {
      const Run run = step_of(step, phase * ms + 300);
      const int64_t before = run.age_us[stepped - 10];
      CHECK(put_off(run) <= step + 20 * ms);
      CHECK(worst(run.age_us, stepped + 50, run.age_us.size()) <= before + step + 20 * ms);
      CHECK(worst(run.age_us, stepped + 450, run.age_us.size()) <= 103 * ms + step + 23 * ms);
      CHECK(run.concealed <= step / (20 * ms) + 7);
      moved += run.age_us.back() - before - step;
    }
    CHECK(std::abs(moved / phases) <= 3 * ms);
  }
}

TEST("on a jittery path a step costs its own length once, and the caution for the jitter stays") {
  for (const int64_t step : {60 * ms, 100 * ms, 150 * ms}) {
    for (int phase = 0; phase < phases; phase += 3) {
      const Run run = step_of(step, phase * ms, 30.0 * ms);
      const int64_t before = worst(run.age_us, 700, stepped);
      CHECK(put_off(run) <= step + 25 * ms);
      CHECK(worst(run.age_us, stepped + 450, run.age_us.size()) <= before + step + 25 * ms);
    }
  }
}

TEST("a path that grows shorter is heard without a loss, and as much earlier in two seconds") {
  int64_t moved = 0;
  for (int phase = 0; phase < phases; phase++) {
    const Run run = step_of(-100 * ms, phase * ms + 300);
    CHECK(run.concealed == 0 && run.late == 0);
    CHECK(worst(run.age_us, stepped + 100, run.age_us.size()) <= 3 * ms + 23 * ms);
    moved += run.age_us.back() - run.age_us[stepped - 10] + 100 * ms;
  }
  CHECK(std::abs(moved / phases) <= 5 * ms);
}

TEST("reordered, doubled and oddly sized packets are taken in order, unchanged") {
  std::vector<Packet> packets;
  Dice dice;
  uint32_t at = 5000;
  const size_t sizes[] = {80, 160, 240, 40, 11, 309};
  for (int i = 0; i < 400; i++) {
    Packet packet{at, 0, frame(at, sizes[i % 6])};
    packet.arrival_us = (at - 5000) * 125 + static_cast<int64_t>(dice.roll() * 30 * ms) * (i > 0);
    packets.push_back(packet);
    if (i % 3 == 0) {
      packet.arrival_us += 2 * ms;
      packets.push_back(packet);
    }
    at += static_cast<uint32_t>(sizes[i % 6]);
  }
  std::stable_sort(packets.begin(), packets.end(),
                   [](const Packet& a, const Packet& b) { return a.arrival_us < b.arrival_us; });
  JitterBuffer buffer;
  size_t next = 0;
  for (uint32_t taken = 5000; taken + 160 <= at; taken += 160) {
    const int64_t now = (taken - 5000) * 125 + 60 * ms;
    for (; next < packets.size() && packets[next].arrival_us <= now; next++) {
      (void)buffer.insert(packets[next].timestamp, packets[next].payload.data(), packets[next].payload.size(),
                          packets[next].arrival_us);
    }
    uint8_t octets[160];
    CHECK(buffer.take(octets, 160) && std::vector<uint8_t>(octets, octets + 160) == frame(taken));
  }
  CHECK(buffer.late() == 0);
}

TEST("a jitter of 80 ms is absorbed: few late packets, and a delay that fits it") {
  Dice dice;
  const Run run = play(stream(3000, [&](int) { return static_cast<int64_t>(dice.roll() * 80 * ms); }), 3000);
  CHECK(run.late < 150);
  CHECK(run.concealed < 200);
  CHECK(worst(run.delay_us, 500, run.delay_us.size()) <= 150 * ms);
}

TEST("loss of 10 % is concealed, and the timeline does not slip") {
  Dice dice;
  const Run run = play(stream(2000, [&](int) { return dice.roll() < 0.1 ? int64_t{-1} : 5 * ms; }), 2000);
  CHECK(run.concealed > 120 && run.concealed < 280);
  CHECK(worst(run.delay_us, 100, run.delay_us.size()) <= 60 * ms);
  double energy = 0;
  for (size_t i = 16000; i < run.heard.size(); i++) energy += static_cast<double>(run.heard[i]) * run.heard[i];
  CHECK(std::sqrt(energy / (run.heard.size() - 16000.0)) >
        4500);  // of 6041 sent: gaps are filled with sound, not silence
}

TEST("a frame more is kept while packets are lost, and given back ten seconds after, at any phase of the ticks") {
  for (int phase = 0; phase < 20; phase += 3) {
    Dice dice;
    const auto delay = [&](int i) { return i >= 500 && i < 1500 && dice.roll() < 0.05 ? int64_t{-1} : 3 * ms; };
    const Run run = play(stream(3000, delay), 3000, phase * ms);
    const int64_t before = worst(run.delay_us, 300, 500);
    CHECK(worst(run.delay_us, 800, 1500) <= before + 25 * ms);  // a stretch may leave a part of a period over
    CHECK(*std::min_element(run.delay_us.begin() + 800, run.delay_us.begin() + 1500) >= 20 * ms);
    CHECK(worst(run.delay_us, 2100, run.delay_us.size()) <= before);
  }
}

TEST(
    "a voice that is lengthened for the frame more that losses ask for, and shortened afterwards, has no click in it") {
  // Its pitch goes up and down by a fifth around 170 Hz.
  const auto voice = [](const std::function<int64_t(int)>& delay) {
    std::vector<Packet> packets = stream(2000, delay);
    for (Packet& packet : packets) {
      int16_t pcm[160];
      for (size_t i = 0; i < 160; i++) {
        const double t = static_cast<double>(packet.timestamp - stream_first + i) / 8000;
        const double turn = 2 * pi * 170 * t + 15 * std::sin(2 * pi * 2.3 * t);
        pcm[i] = static_cast<int16_t>(9000 * std::sin(turn) + 3000 * std::sin(2 * turn));
      }
      mulaw_encode(pcm, packet.payload.data(), 160);
    }
    return packets;
  };
  const auto heard = [&](int lost) {
    const auto delay = [=](int i) { return i == lost || i == lost + 6 ? int64_t{-1} : 3 * ms; };
    return play(voice(delay), 2000, 15 * ms);
  };
  const Run whole = heard(-10);
  for (int lost = 1300; lost < 1314; lost++) {
    const Run torn = heard(lost);
    CHECK(torn.delay_us[1390] >= whole.delay_us[1390] + 10 * ms);
    CHECK(torn.delay_us.back() < torn.delay_us[1390]);
    const size_t from = static_cast<size_t>(lost + 9) * 160, to = torn.heard.size();
    CHECK(sharpest(torn.heard, from, to) <= sharpest(whole.heard, from - 8000, to) * 5 / 4);
  }
}

TEST("one packet that is lost now and then, and pauses of the far end, leave the delay as it is") {
  const auto lost = [](int i) { return i % 700 == 650 ? int64_t{-1} : 3 * ms; };
  const auto paused = [](int i) { return i % 100 >= 80 ? int64_t{-1} : 3 * ms; };
  CHECK(worst(play(stream(4000, lost), 4000).delay_us, 700, 4000) <= 23 * ms);
  CHECK(worst(play(stream(4000, paused), 4000).delay_us, 700, 4000) <= 23 * ms);
}

TEST("after a stall of 250 ms the delay is back within 5 ms in a second") {
  const Run run =
      play(stream(1000, [](int i) { return i >= 500 && i < 513 ? (513 - i) * 20 * ms + 3 * ms : 3 * ms; }), 1000);
  const int64_t before = worst(run.delay_us, 400, 490);
  CHECK(worst(run.delay_us, 513 + 50, run.delay_us.size()) <= before + 5 * ms);
}

TEST("after 400 ms in which the listener took nothing the delay is back within 5 ms in a second") {
  const Run run = play(stream(1500, [](int) { return 3 * ms; }), 1500, 7 * ms, 900, 920);
  CHECK(run.late == 0 && run.concealed == 0);
  const int64_t before = worst(run.delay_us, 800, 890);
  CHECK(worst(run.delay_us, 899, 905) > before + 300 * ms);
  CHECK(worst(run.delay_us, 899 + 50, run.delay_us.size()) <= before + 5 * ms);
}

TEST("a drift of the sender's clock either way is absorbed for minutes") {
  for (const int64_t period : {20 * ms - 6, 20 * ms + 6}) {  // 300 ppm
    const Run run = play(stream(15000, [](int) { return 4 * ms; }, period), 15000);
    CHECK(worst(run.delay_us, 600, run.delay_us.size()) <= 45 * ms);
    CHECK(run.late < 10);
    CHECK(run.concealed < 30);
  }
}

TEST("a sender whose timestamps stood still over a pause is heard again within 200 ms") {
  std::vector<Packet> packets = stream(100, [](int) { return 3 * ms; });
  for (int i = 100; i < 200; i++) {  // three seconds later, the timestamps as if nothing had been
    const uint32_t timestamp = 0xffff0000 + static_cast<uint32_t>(i) * 160;
    packets.push_back({timestamp, (i + 150) * 20 * ms, frame(timestamp)});
  }
  const Run run = play(packets, 400);
  double energy = 0;
  for (size_t i = 262 * 160; i < 340 * 160; i++) energy += static_cast<double>(run.heard[i]) * run.heard[i];
  CHECK(std::sqrt(energy / (78 * 160)) > 4000);
}

TEST("a jump of the timestamps starts the buffer over") {
  std::vector<Packet> packets = stream(100, [](int) { return 3 * ms; });
  std::vector<Packet> later = stream(100, [](int) { return 3 * ms; }, 20 * ms, 0x40000000);
  for (Packet& packet : later) packet.arrival_us += 2000 * ms;
  packets.insert(packets.end(), later.begin(), later.end());
  const Run run = play(packets, 200);
  double energy = 0;
  for (size_t i = 110 * 160; i < 190 * 160; i++) energy += static_cast<double>(run.heard[i]) * run.heard[i];
  CHECK(std::sqrt(energy / (80 * 160)) > 5000);
}

TEST("a burst loss fades to silence within 100 ms instead of buzzing on") {
  const Run run = play(stream(300, [](int i) { return i >= 100 && i < 150 ? int64_t{-1} : 3 * ms; }), 300);
  double energy = 0;
  for (size_t i = 112 * 160; i < 148 * 160; i++) energy += static_cast<double>(run.heard[i]) * run.heard[i];
  CHECK(energy == 0);
}

namespace {

/** The worst delay of a call in a pipe that pauses now and then. Its packets come at a place of their own between the
 * ticks of the node that passes them on, and go on with the number of the next tick. Frames of that node come at the
 * ticks, and go on a whole number of frames after the last packet (leg/relay.h). */
int64_t worst_of_pauses(bool marked) {
  Playout playout(Codec::pcmu);
  uint32_t timestamp = 1000;
  int64_t most = 0;
  for (int turn = 0; turn < 40; turn++) {
    const bool passed_on = turn % 2 == 0;
    const int64_t early_us = passed_on ? (20 - (1 + turn * 7 % 19)) * ms : 0;
    if (!passed_on) timestamp += 160;
    for (int i = 0; i < 100; i++) {
      const int64_t tick_us = (turn * 100 + i) * 20 * ms;
      const std::vector<uint8_t> octets = frame(timestamp);
      if (marked && i == 0) playout.jitter().begin_anew();
      playout.insert(timestamp, octets.data(), octets.size(), tick_us - early_us);
      timestamp += 160;
      int16_t out[frame_samples_max];
      bool heard = false;
      (void)playout.frame(tick_us + 5 * ms, out, heard);
      if (i >= 5) most = std::max(most, playout.delay_us());
    }
  }
  return most;
}

}  // namespace

TEST("a call in a pipe that pauses again and again is heard as soon as one that never pauses") {
  CHECK(worst_of_pauses(true) <= 27 * ms);
  CHECK(worst_of_pauses(false) > 35 * ms);
}
