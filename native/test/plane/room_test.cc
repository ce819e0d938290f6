#include <cmath>
#include <random>

#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

constexpr double pi = 3.14159265358979323846;

std::vector<uint8_t> noise(std::mt19937& random) {
  std::vector<uint8_t> octets(frame_units);
  for (uint8_t& octet : octets) octet = static_cast<uint8_t>(random());
  return octets;
}

/** Level of a sine in a span of a whole number of its periods, in dB below full scale. */
double level(const std::vector<int16_t>& pcm, double hz, double rate) {
  double cos = 0;
  double sin = 0;
  for (size_t i = 0; i < pcm.size(); i++) {
    cos += pcm[i] * std::cos(2 * pi * hz * static_cast<double>(i) / rate);
    sin += pcm[i] * std::sin(2 * pi * hz * static_cast<double>(i) / rate);
  }
  return 20 * std::log10(2 * std::hypot(cos, sin) / static_cast<double>(pcm.size()) / 32768 + 1e-9);
}

/** A party that says a tone in its codec, and decodes what it hears. */
struct Singer {
  FarEnd* far;
  Codec codec;
  double hz;
  Encoder encoder{};
  Decoder decoder{};
  size_t at = 0;
  std::vector<int16_t> pcm{};

  double rate() const { return codec_rate_hz(codec); }
  void sing() {
    std::vector<int16_t> frame(codec_samples(codec, frame_units));
    for (int16_t& sample : frame)
      sample = static_cast<int16_t>(std::lrint(8000 * std::sin(2 * pi * hz * static_cast<double>(at++) / rate())));
    say_coded(*far, codec, encoder, frame);
  }
  void hear() { hear_coded(*far, codec, decoder, pcm); }
  /** What was heard in the last seconds; silence where it was less than that. */
  std::vector<int16_t> last(double seconds) const {
    const size_t count = static_cast<size_t>(seconds * rate());
    std::vector<int16_t> out(count);
    const size_t there = std::min(count, pcm.size());
    std::copy(pcm.end() - static_cast<std::ptrdiff_t>(there), pcm.end(),
              out.end() - static_cast<std::ptrdiff_t>(there));
    return out;
  }
};

}  // namespace

TEST("every member of a room hears the exact saturated sum of all others, to the bit, talkers and listeners alike") {
  std::mt19937 random(7);
  Bench bench;
  constexpr size_t talkers = 5;
  constexpr size_t members = 8;
  CHECK(bench.plane->open_room(100));
  std::vector<std::vector<uint8_t>> said(members);
  for (size_t i = 0; i < members; i++) {
    const Codec codec = i % 2 == 0 ? Codec::pcmu : Codec::pcma;
    CHECK(bench.open(codec) != nullptr);
    CHECK(bench.plane->join(static_cast<uint32_t>(i + 1), 100, false, 100, 100));
    if (i < talkers) said[i] = noise(random);
  }
  for (int tick = 0; tick < 20; tick++) {
    for (size_t i = 0; i < talkers; i++) bench.ends[i]->say(said[i]);
    bench.tick();
  }
  for (size_t i = 0; i < members; i++) {
    int32_t sum[frame_units] = {};
    for (size_t j = 0; j < talkers; j++) {
      if (j == i) continue;
      int16_t pcm[frame_units];
      Decoder().decode(j % 2 == 0 ? Codec::pcmu : Codec::pcma, said[j].data(), pcm, frame_units);
      for (size_t k = 0; k < frame_units; k++) sum[k] += pcm[k];
    }
    int16_t mixed[frame_units];
    for (size_t k = 0; k < frame_units; k++)
      mixed[k] = static_cast<int16_t>(sum[k] > 32767 ? 32767 : sum[k] < -32768 ? -32768 : sum[k]);
    std::vector<uint8_t> expected(frame_units);
    Encoder().encode(i % 2 == 0 ? Codec::pcmu : Codec::pcma, mixed, expected.data(), frame_units);
    const auto heard = bench.ends[i]->heard();
    CHECK(heard.size() == 20);
    CHECK(heard.back() == expected);
  }
  size_t joined = 0;
  for (const Notice& notice : bench.notices()) joined += notice.kind == NoticeKind::room_joined && notice.a == 100;
  CHECK(joined == members);
}

TEST(
    "members of different rates meet at every rate: wide-band ones lose nothing to narrow-band ones, and nobody hears "
    "itself") {
  Bench bench;
  CHECK(bench.plane->open_room(100));
  Singer singers[] = {{bench.open(), Codec::pcmu, 500},
                      {bench.open(Codec::g722), Codec::g722, 700},
                      {bench.open(Codec::g722), Codec::g722, 5000}};
  for (uint32_t id = 1; id <= 3; id++) CHECK(bench.plane->join(id, 100, false, 100, 100));
  for (int tick = 0; tick < 100; tick++) {
    for (Singer& singer : singers) singer.sing();
    bench.tick();
    for (Singer& singer : singers) singer.hear();
  }
  const double own = 20 * std::log10(8000.0 / 32768);
  for (const Singer& ear : singers) {
    const std::vector<int16_t> heard = ear.last(1);
    for (const Singer& mouth : singers) {
      const double got = level(heard, mouth.hz, ear.rate());
      if (&ear == &mouth) CHECK(got < own - 45);
      else if (mouth.hz < ear.rate() / 2) CHECK(std::fabs(got - own) < 0.5);
    }
  }
  // 5 kHz does not exist at 8 kHz: its image at 3 kHz drowns in the harmonics of G.711.
  CHECK(level(singers[0].last(1), 3000, 8000) < own - 45);
}

TEST("a coach hears everyone and is heard by its member only, at any rate, until that one leaves; then by nobody") {
  Bench bench;
  CHECK(bench.plane->open_room(100));
  // The member that is coached, another one, a coach of the same rate and one of another rate.
  Singer singers[] = {{bench.open(), Codec::pcmu, 500},
                      {bench.open(), Codec::pcmu, 700},
                      {bench.open(), Codec::pcmu, 900},
                      {bench.open(Codec::g722), Codec::g722, 1100}};
  for (uint32_t id = 1; id <= 4; id++) CHECK(bench.plane->join(id, 100, false, 100, 100));
  CHECK(bench.plane->coach(3, 1) && bench.plane->coach(4, 1));
  CHECK(!bench.plane->coach(9, 1));
  CHECK(bench.plane->detect_voices(100, true));
  const auto run = [&bench, &singers](int ticks) {
    for (int tick = 0; tick < ticks; tick++) {
      for (Singer& singer : singers) singer.sing();
      bench.tick();
      for (Singer& singer : singers) singer.hear();
    }
  };
  const double own = 20 * std::log10(8000.0 / 32768);
  // 1: as loud as it was said; 0: not at all; -1: neither.
  const auto hears = [&singers, own](size_t ear, size_t mouth) {
    const double got = level(singers[ear].last(1), singers[mouth].hz, singers[ear].rate());
    return std::fabs(got - own) < 0.5 ? 1 : got < own - 45 ? 0 : -1;
  };
  run(100);
  const int expected[4][4] = {{0, 1, 1, 1}, {1, 0, 0, 0}, {1, 1, 0, 0}, {1, 1, 0, 0}};
  for (size_t ear = 0; ear < 4; ear++) {
    for (size_t mouth = 0; mouth < 4; mouth++) CHECK(hears(ear, mouth) == expected[ear][mouth]);
  }
  for (const Notice& notice : bench.notices()) CHECK(notice.kind != NoticeKind::voice || notice.leg <= 2);
  CHECK(bench.plane->mute(3, true));
  run(100);
  CHECK(hears(0, 2) == 0 && hears(0, 3) == 1);
  CHECK(bench.plane->leave(1));
  run(100);
  for (size_t ear = 0; ear < 4; ear++) CHECK(hears(ear, 2) == 0 && hears(ear, 3) == 0);
  CHECK(hears(2, 1) == 1 && hears(3, 1) == 1);
  CHECK(bench.plane->join(1, 100, false, 100, 100));
  run(100);
  CHECK(hears(0, 2) == 0 && hears(0, 3) == 0 && hears(0, 1) == 1);
}

TEST("a coach alone with its member is heard by it, and their packets are not passed on as they come") {
  Bench bench;
  CHECK(bench.plane->open_room(100));
  Singer singers[] = {{bench.open(), Codec::pcmu, 500}, {bench.open(), Codec::pcmu, 700}};
  for (uint32_t id = 1; id <= 2; id++) CHECK(bench.plane->join(id, 100, false, 100, 100));
  CHECK(bench.plane->coach(2, 1));
  for (int tick = 0; tick < 100; tick++) {
    for (Singer& singer : singers) singer.sing();
    bench.tick();
    for (Singer& singer : singers) singer.hear();
    for (uint32_t id = 1; id <= 2; id++) CHECK(!bench.plane->leg(id)->relays());
  }
  const double own = 20 * std::log10(8000.0 / 32768);
  CHECK(std::fabs(level(singers[0].last(1), 700, 8000) - own) < 0.5);
  CHECK(std::fabs(level(singers[1].last(1), 500, 8000) - own) < 0.5);
}

TEST("a far end that we hold is heard by nobody, whether or not it holds us too, and again when we hold it no longer") {
  Bench bench;
  CHECK(bench.plane->open_room(100));
  Singer singers[] = {
      {bench.open(), Codec::pcmu, 500}, {bench.open(), Codec::pcmu, 700}, {bench.open(), Codec::pcmu, 900}};
  for (uint32_t id = 1; id <= 3; id++) CHECK(bench.plane->join(id, 100, false, 100, 100));
  const auto heard = [&](bool send, bool receive, bool holding) {
    Negotiated agreed;
    agreed.rtp = singers[1].far->here();
    agreed.rtcp = nowhere();
    agreed.send = send;
    agreed.receive = receive;
    agreed.holding = holding;
    bench.plane->negotiate(2, agreed, bench.now);
    for (int tick = 0; tick < 100; tick++) {
      for (Singer& singer : singers) singer.sing();
      bench.tick();
      for (Singer& singer : singers) singer.hear();
    }
    return level(singers[0].last(1), 700, 8000) > -60;
  };
  CHECK(heard(true, true, false));
  CHECK(!heard(true, false, true));
  CHECK(!heard(false, false, true));
  CHECK(heard(false, false, false));
  CHECK(heard(true, true, false));
}

TEST("a member that we hold hears nothing of the room but its own playback, and the room again afterwards") {
  for (const uint32_t members : {2u, 3u}) {
    Bench bench;
    CHECK(bench.plane->open_room(100));
    Singer singers[] = {
        {bench.open(), Codec::pcmu, 500}, {bench.open(), Codec::pcmu, 700}, {bench.open(), Codec::pcmu, 900}};
    for (uint32_t id = 1; id <= members; id++) CHECK(bench.plane->join(id, 100, false, 100, 100));
    const auto run = [&](bool holding) {
      Negotiated agreed;
      agreed.rtp = singers[1].far->here();
      agreed.rtcp = nowhere();
      agreed.receive = !holding;
      agreed.holding = holding;
      bench.plane->negotiate(2, agreed, bench.now);
      for (int tick = 0; tick < 100; tick++) {
        for (Singer& singer : singers) singer.sing();
        bench.tick();
        for (Singer& singer : singers) singer.hear();
      }
    };
    const auto hears = [&](double hz) { return level(singers[1].last(0.5), hz, 8000) > -30; };
    run(false);
    CHECK(hears(500) && hears(900) == (members == 3));
    run(true);
    CHECK(!hears(500) && !hears(900));
    std::vector<int16_t> pcm(8000 * 3);
    for (size_t i = 0; i < pcm.size(); i++)
      pcm[i] = static_cast<int16_t>(std::lrint(8000 * std::sin(2 * pi * 300 * static_cast<double>(i) / 8000)));
    CHECK(bench.plane->play(2, 1, 8000, 100) && bench.plane->feed(2, 1, pcm.data(), pcm.size()));
    run(true);
    CHECK(hears(300) && !hears(500) && !hears(900));
    CHECK(bench.plane->stop(2, 1));
    run(false);
    CHECK(!hears(300) && hears(500) && hears(900) == (members == 3));
  }
}

TEST(
    "hold music is heard by a member that is alone while nothing is played, fades for it, and asks for more only "
    "then") {
  Bench bench;
  CHECK(bench.plane->open_room(100));
  CHECK(bench.plane->open_music(100, 200) && !bench.plane->open_music(100, 201) && !bench.plane->open_music(9, 202));
  Singer a{bench.open(), Codec::pcmu, 0};
  Singer b{bench.open(), Codec::pcmu, 0};
  std::vector<int16_t> pcm(8000 * 4);
  for (size_t i = 0; i < pcm.size(); i++)
    pcm[i] = static_cast<int16_t>(std::lrint(8000 * std::sin(2 * pi * 100 * static_cast<double>(i) / 8000)));
  CHECK(bench.plane->play(200, 1, 8000, 100) && bench.plane->feed(200, 1, pcm.data(), pcm.size()));
  const auto run = [&](int ticks) {
    for (int tick = 0; tick < ticks; tick++) {
      bench.tick();
      a.hear();
      b.hear();
    }
  };
  const double loud = 20 * std::log10(8000.0 / 32768);
  const auto hears = [&](const Singer& ear) { return level(ear.last(0.2), 100, 8000) > loud - 1; };
  const auto silent = [&](const Singer& ear) { return level(ear.last(0.2), 100, 8000) < -60; };
  run(15);
  CHECK(silent(a) && silent(b));
  CHECK(bench.plane->join(1, 100, false, 100, 100));
  run(15);
  CHECK(hears(a) && silent(b));
  CHECK(bench.plane->join(2, 100, false, 100, 100));
  run(30);
  CHECK(silent(a) && silent(b));
  CHECK(bench.plane->leave(1));
  run(15);
  CHECK(silent(a) && hears(b));
  CHECK(bench.plane->play(100, 2, 8000, 100));
  run(15);
  CHECK(silent(b));
  CHECK(bench.plane->stop(100, 2));
  run(15);
  CHECK(hears(b));
  for (const Singer& ear : {a, b}) {
    int32_t steepest = 0;
    for (size_t i = 1; i < ear.pcm.size(); i++) steepest = std::max(steepest, std::abs(ear.pcm[i] - ear.pcm[i - 1]));
    CHECK(steepest < 1200);  // the tone's own, with the steps of mu-law on top
  }
  size_t started = 0;
  size_t hungry = 0;
  for (const Notice& notice : bench.notices()) {
    started += notice.kind == NoticeKind::playback_started && notice.leg == 200;
    hungry += notice.kind == NoticeKind::playback_hungry && notice.leg == 200;
  }
  CHECK(started == 1 && hungry == 0);  // under a second was heard of the four
  CHECK(bench.plane->close_room(100));
  run(2);
  CHECK(!bench.plane->feed(200, 1, pcm.data(), 160));
  CHECK(bench.plane->open_room(100));
}

TEST("hold music is not heard by a member that we hold, and again when we hold it no longer") {
  Bench bench;
  CHECK(bench.plane->open_room(100) && bench.plane->open_music(100, 200));
  Singer singer{bench.open(), Codec::pcmu, 0};
  const std::vector<int16_t> pcm(8000 * 4, 8000);
  CHECK(bench.plane->play(200, 1, 8000, 100) && bench.plane->feed(200, 1, pcm.data(), pcm.size()));
  CHECK(bench.plane->join(1, 100, false, 100, 100));
  const auto hears = [&](bool holding) {
    Negotiated agreed;
    agreed.rtp = singer.far->here();
    agreed.rtcp = nowhere();
    agreed.receive = !holding;
    agreed.holding = holding;
    bench.plane->negotiate(1, agreed, bench.now);
    for (int tick = 0; tick < 15; tick++) bench.tick();
    singer.hear();
    return singer.pcm.back() > 7000;
  };
  CHECK(hears(false) && !hears(true) && hears(false));
}

TEST("hold music that its only listener has left begins over a ramp for the next one, with nothing of what was heard") {
  Bench bench;
  CHECK(bench.plane->open_room(100) && bench.plane->open_music(100, 200));
  Singer a{bench.open(), Codec::pcmu, 0};
  Singer b{bench.open(), Codec::pcmu, 0};
  const std::vector<int16_t> pcm(8000 * 4, 8000);
  CHECK(bench.plane->play(200, 1, 8000, 100) && bench.plane->feed(200, 1, pcm.data(), pcm.size()));
  CHECK(bench.plane->join(1, 100, false, 100, 100));
  for (int tick = 0; tick < 5; tick++) bench.tick();
  CHECK(bench.plane->leave(1));
  for (int tick = 0; tick < 5; tick++) bench.tick();
  CHECK(bench.plane->join(2, 100, false, 100, 100));
  for (int tick = 0; tick < 3; tick++) bench.tick();
  a.hear();
  b.hear();
  const auto loud = std::find_if(b.pcm.begin(), b.pcm.end(), [](int16_t sample) { return sample > 7000; });
  const auto first = std::find_if(b.pcm.begin(), b.pcm.end(), [](int16_t sample) { return sample > 100; });
  CHECK(a.pcm.size() == b.pcm.size() && loud != b.pcm.end());
  CHECK(loud - first > 30 && *first < 400);
}

TEST("joining, muting, a change of volume and leaving ramp: no step beyond the sound's own") {
  Bench bench;
  CHECK(bench.plane->open_room(100));
  Singer mouth{bench.open(), Codec::pcmu, 100};
  Singer ear{bench.open(), Codec::pcmu, 0};
  CHECK(bench.plane->join(2, 100, false, 100, 100));
  for (int tick = 0; tick < 200; tick++) {
    mouth.sing();
    if (tick == 20) CHECK(bench.plane->join(1, 100, false, 100, 100));
    if (tick == 40) CHECK(bench.plane->mute(1, true));
    if (tick == 60) CHECK(bench.plane->mute(1, false));
    if (tick == 80) CHECK(bench.plane->volume(1, true, 20));
    if (tick == 100) CHECK(bench.plane->volume(1, true, 100));
    if (tick == 120) CHECK(bench.plane->volume(2, false, 10));
    if (tick == 140) CHECK(bench.plane->volume(2, false, 100));
    if (tick == 160) CHECK(bench.plane->leave(1));
    if (tick == 170) CHECK(bench.plane->join(1, 100, false, 100, 100));
    if (tick == 185) {
      Counters counters;
      CHECK(bench.plane->close(1, counters, bench.now));
    }
    bench.tick();
    ear.hear();
  }
  int32_t steepest = 0;
  for (size_t i = 1; i < ear.pcm.size(); i++) steepest = std::max(steepest, std::abs(ear.pcm[i] - ear.pcm[i - 1]));
  CHECK(steepest <
        1200);  // the tone's own: 2 pi 100 / 8000 of 8000, and mu-law's steps on top; a click would be thousands
  std::vector<int> left;
  for (const Notice& notice : bench.notices()) {
    if (notice.kind == NoticeKind::room_left) left.push_back(static_cast<int>(notice.leg));
  }
  CHECK((left == std::vector<int>{1, 1}));
}

TEST("what a room plays sounds the same to its members whoever of another codec comes and goes") {
  for (const uint32_t playback_hz : {8000u, 16'000u, 48'000u}) {
    std::vector<int16_t> heard[2];
    for (const bool is_visited : {false, true}) {
      Bench bench;
      CHECK(bench.plane->open_room(100));
      Singer ear{bench.open(), Codec::pcmu, 0};
      Singer wide{bench.open(Codec::g722), Codec::g722, 0};
      CHECK(bench.plane->join(1, 100, false, 100, 100));
      std::vector<int16_t> pcm(playback_hz * 4);
      for (size_t i = 0; i < pcm.size(); i++)
        pcm[i] = static_cast<int16_t>(std::lrint(8000 * std::sin(2 * pi * 100 * static_cast<double>(i) / playback_hz)));
      CHECK(bench.plane->play(100, 1, playback_hz, 100) && bench.plane->feed(100, 1, pcm.data(), pcm.size()));
      for (int tick = 0; tick < 100; tick++) {
        if (is_visited && tick == 20) CHECK(bench.plane->join(2, 100, true, 100, 100));
        if (is_visited && tick == 50) CHECK(bench.plane->leave(2));
        if (is_visited && tick == 70) CHECK(bench.plane->join(2, 100, true, 100, 100));
        bench.tick();
        ear.hear();
        wide.hear();
        if (is_visited && (tick == 49 || tick == 99))
          CHECK(level(wide.last(0.2), 100, 16'000) > 20 * std::log10(8000.0 / 32768) - 1);
      }
      heard[is_visited ? 1 : 0] = ear.pcm;
    }
    CHECK(heard[0].size() == heard[1].size() && heard[0] == heard[1]);
  }
}

TEST("a change of the volume of what a room plays ramps") {
  Bench bench;
  CHECK(bench.plane->open_room(100));
  Singer ear{bench.open(), Codec::pcmu, 0};
  CHECK(bench.plane->join(1, 100, false, 100, 100));
  std::vector<int16_t> pcm(16'000 * 4);
  for (size_t i = 0; i < pcm.size(); i++)
    pcm[i] = static_cast<int16_t>(std::lrint(8000 * std::cos(2 * pi * 100 * static_cast<double>(i) / 16'000)));
  CHECK(bench.plane->play(100, 1, 16'000, 20) && bench.plane->feed(100, 1, pcm.data(), pcm.size()));
  for (int tick = 0; tick < 150; tick++) {
    if (tick % 13 == 12) CHECK(bench.plane->play_volume(100, tick % 2 == 0 ? 200 : 20));
    bench.tick();
    ear.hear();
  }
  int32_t steepest = 0;
  for (size_t i = 1; i < ear.pcm.size(); i++) steepest = std::max(steepest, std::abs(ear.pcm[i] - ear.pcm[i - 1]));
  CHECK(steepest < 2200);  // the tone's own at 200 %, with the ramp and the steps of mu-law on top; a click is 9,000
}

TEST(
    "a closed room is left by all and over; another room is left first when a member joins; a missing room is told as "
    "left") {
  Bench bench;
  CHECK(bench.plane->open_room(100) && bench.plane->open_room(101) && !bench.plane->open_room(101));
  CHECK(bench.open() != nullptr && bench.open() != nullptr);
  CHECK(!bench.plane->open_room(1));
  CHECK(bench.plane->join(1, 100, false, 100, 100) && bench.plane->join(2, 100, false, 100, 100));
  bench.tick();
  CHECK(bench.plane->join(1, 101, true, 100, 100));
  bench.tick();
  CHECK(bench.plane->close_room(100));
  CHECK(!bench.plane->join(1, 100, false, 100, 100));
  CHECK(bench.plane->participant(1)->seat() != nullptr);
  bench.tick();
  CHECK(!bench.plane->close_room(100));
  CHECK(!bench.plane->join(7, 101, false, 100, 100));
  std::vector<std::vector<uint32_t>> told;
  for (const Notice& notice : bench.notices())
    told.push_back({static_cast<uint32_t>(notice.kind), notice.leg, notice.a});
  const std::vector<std::vector<uint32_t>> expected = {{8, 1, 100}, {8, 2, 100}, {9, 1, 100}, {8, 1, 101},
                                                       {9, 1, 100}, {9, 2, 100}, {9, 7, 101}};
  CHECK(told == expected);
}

TEST("a participant moves to another plane with its socket and its state, and goes on without losing a frame") {
  Bench here;
  Bench there;
  FarEnd* far = here.open();
  CHECK(far != nullptr);
  CHECK(here.plane->open_room(100) && there.plane->open_room(101));
  CHECK(here.plane->join(1, 100, false, 100, 100));
  const std::vector<int16_t> pcm(16000, 1000);
  CHECK(here.plane->play(1, 9, 8000, 100) && here.plane->feed(1, 9, pcm.data(), pcm.size()));
  for (int tick = 0; tick < 10; tick++) {
    far->say(std::vector<uint8_t>(frame_units, 0x80));
    here.tick();
  }
  CHECK(!here.plane->move(1, here.plane->number(), here.now) && !here.plane->move(1, 0xffffffff, here.now) &&
        !here.plane->move(2, there.plane->number(), here.now));
  CHECK(here.plane->move(1, there.plane->number(), here.now));
  CHECK(here.plane->legs() == 0 && there.plane->legs() == 0);
  for (int tick = 0; tick < 10; tick++) {
    far->say(std::vector<uint8_t>(frame_units, 0x80));
    there.tick();
  }
  CHECK(there.plane->legs() == 1);
  Counters counters;
  CHECK(there.plane->counters(1, counters) && counters.received == 20 && counters.lost == 0 && counters.sent == 20);
  const auto heard = far->heard();
  CHECK(heard.size() == 20);
  for (const auto& payload : heard) CHECK(payload[80] != 0xff);
  const auto told = there.notices();
  CHECK(told.size() == 1 && told[0].kind == NoticeKind::moved && told[0].leg == 1);
  CHECK(here.plane->open_room(1));
}
