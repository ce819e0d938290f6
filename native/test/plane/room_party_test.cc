// What a room makes of levels: who is heard by whom, how loud, and what its recordings and notices have of it.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "plane/room/room.h"
#include "test/check.h"
#include "test/plane/bench.h"
#include "test/plane/party.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

/** Three members of a room at 8 kHz, of which the first two are silent at the beginning. */
struct Three {
  Studio studio;
  Party ear{1};
  Party a{2};
  Party b{3};
  Room room{100, studio.filters};

  Three() {
    for (Party* party : {&ear, &a, &b}) (void)room.join(*party, false, 100, 100);
  }
  void tick(int ticks = 1) { studio.tick(room, ticks); }
};

/** What is left at the first sample of a ramp of 5 ms at 8 kHz. */
constexpr int16_t falling(int level) { return static_cast<int16_t>(level * 39 / 40); }

}  // namespace

TEST("a member joins muted and with its volumes, from its first frame on") {
  Studio studio;
  Party ear(1);
  Party loud(2);
  Party muted(3);
  Room room(100, studio.filters);
  (void)room.join(ear, false, 100, 50);
  (void)room.join(loud, false, 200, 100);
  (void)room.join(muted, true, 100, 200);
  ear.say(10);
  loud.say(1000);
  muted.say(5000);
  studio.tick(room, 2);
  CHECK(ear.hears_now.back() == 1000 && loud.hears_now.back() == 10 && muted.hears_now.back() == 4020);
  room.set_volume(*ear.seat(), false, 0);
  room.mute(*muted.seat(), false, studio.notices);
  studio.tick(room, 2);
  CHECK(is_silent(ear) && loud.hears_now.back() == 5010);
}

TEST("members that are gone in the same moment fall together, and so do those that become coaches") {
  for (const bool coaches : {false, true}) {
    Three three;
    three.a.say(1000);
    three.b.say(3000);
    three.tick(3);
    CHECK(three.ear.hears_now.back() == 4000);
    for (Party* party : {&three.a, &three.b}) {
      if (coaches) three.room.coach(*party->seat(), nullptr);
      else three.room.drop(*party->seat(), three.studio.notices);
    }
    three.tick();
    CHECK(three.ear.hears_now.front() == falling(4000) && three.ear.hears_now[39] == 0);
    three.tick();
    CHECK(is_silent(three.ear));
  }
}

TEST("a room that is recorded at its own rate has that of its widest member, whoever comes, goes and changes codec") {
  Studio studio;
  Party narrow(1);
  Party wide(2, 48'000);
  Room room(100, studio.filters);
  const auto top_hz = [&room] { return rate_table_hz[room.top()]; };
  CHECK(top_hz() == 8000u);
  (void)room.join(narrow, false, 100, 100);
  CHECK(top_hz() == 8000u);
  (void)room.join(wide, false, 100, 100);
  CHECK(top_hz() == 48'000u);
  studio.tick(room);
  wide.turn(16'000);
  studio.tick(room);
  CHECK(top_hz() == 16'000u);
  wide.turn(24'000);
  studio.tick(room);
  CHECK(top_hz() == 24'000u);
  room.drop(*wide.seat(), studio.notices);
  CHECK(top_hz() == 8000u);
  (void)room.join(wide, false, 100, 100);
  room.leave(*wide.seat());
  studio.tick(room, 2);
  CHECK(top_hz() == 8000u && room.members() == 1);
}

TEST("a recording of a room has what its members say and what it plays, and neither the muted nor a coach") {
  Three three;
  const RecorderOptions options = three.studio.options("room.wav");
  three.room.record(std::make_unique<Recorder>(options));
  three.room.mute(*three.b.seat(), true, three.studio.notices);
  three.ear.say(100);
  three.a.say(1000);
  three.b.say(5000);
  three.tick(2);
  three.room.mute(*three.b.seat(), false, three.studio.notices);
  three.tick();
  three.room.coach(*three.b.seat(), three.ear.seat());
  three.tick();
  CHECK(three.ear.hears_now.back() == 6000 && three.a.hears_now.back() == 100);
  play(three.room.player(), 1, 20, frame_units);
  three.tick();
  for (Party* party : {&three.ear, &three.a, &three.b}) party->say(0);
  three.tick();
  CHECK(three.room.recorder(7) != nullptr && three.room.recorder(8) == nullptr);
  three.room.recorder(7)->stop();
  CHECK(three.studio.ended(three.room));
  CHECK((frames(options.path) == std::vector<int16_t>{1100, 1100, 6100, 1100, 1120, 0}));
  CHECK(three.room.recorder(7) == nullptr);
}

TEST("a room that nobody is in is left out of its recording, and a pause of the plane is a gap in it") {
  for (const bool has_gaps : {false, true}) {
    Studio studio;
    Party party(1);
    Room room(100, studio.filters);
    RecorderOptions options = studio.options("room.wav");
    options.include_gaps = has_gaps;
    room.record(std::make_unique<Recorder>(options));
    CHECK(!room.idle());
    studio.tick(room, 2);
    play(room.player(), 1, 300, frame_units);
    studio.tick(room);  // it is heard by nobody, and recorded
    party.say(1000);
    (void)room.join(party, false, 100, 100);
    studio.tick(room);
    room.pause(3);
    party.say(0);
    studio.tick(room);  // who is there and silent is no gap
    room.recorder(7)->stop();
    CHECK(studio.ended(room));
    const auto kept = has_gaps ? std::vector<int16_t>{0, 0, 300, 1000, 0, 0, 0, 0} : std::vector<int16_t>{300, 1000, 0};
    CHECK(frames(options.path) == kept);
  }
}

TEST("recordings of a room each have their own rate, hear speech at it, and end one by one") {
  Studio studio;
  Party party(1, 16'000);
  Room room(100, studio.filters);
  (void)room.join(party, false, 100, 100);
  const RecorderOptions narrow = studio.options("narrow.wav", 7, true);
  const RecorderOptions wide = studio.options("wide.wav", 8, false, 48'000);
  room.record(std::make_unique<Recorder>(narrow));
  room.record(std::make_unique<Recorder>(wide));
  party.say(0);
  studio.tick(room, 20);
  CHECK(studio.told(NoticeKind::speech_started) == 0);
  party.say(4000);
  studio.tick(room, 10);
  CHECK(studio.told(NoticeKind::speech_started) == 1);
  room.recorder(8)->stop();
  CHECK(studio.ended(room));
  CHECK(room.recorder(8) == nullptr && room.recorder(7) != nullptr);
  room.recorder(7)->stop();
  CHECK(studio.ended(room, 2));
  CHECK(room.recorder(7) == nullptr);
  const Wav heard = read_wav(wide.path);
  CHECK(heard.whole && heard.samples.size() == 30 * 960);
  CHECK(heard.samples[0] == 0 && std::abs(heard.samples[25 * 960] - 4000) < 60);
  const std::vector<int16_t> kept = frames(narrow.path);
  CHECK(kept.size() >= 30 && kept[10] == 0 && std::abs(kept[25] - 4000) < 60);
}

TEST("who talks is told as silent when the detection ends, and others are told nothing") {
  Three three;
  three.room.detect_voices(true, three.studio.notices);
  three.tick(20);
  three.a.say(4000);
  three.tick(10);
  three.studio.notices.clear();
  three.room.detect_voices(true, three.studio.notices);
  CHECK(three.studio.notices.empty());
  three.room.detect_voices(false, three.studio.notices);
  CHECK(three.studio.notices.size() == 1);
  const Notice& told = three.studio.notices.front();
  CHECK(told.kind == NoticeKind::voice && told.leg == 2 && told.a == 0);
  three.studio.notices.clear();
  three.tick(60);
  CHECK(three.studio.notices.empty());
}

TEST("hold music falls over a ramp for its listener when another one joins, and when the room closes") {
  for (const bool closes : {false, true}) {
    Studio studio;
    Party party(1);
    Party other(2);
    Room room(100, studio.filters);
    room.open_music(200);
    play(*room.music(), 1, 4000, 8000);
    (void)room.join(party, false, 100, 100);
    studio.tick(room, 3);
    CHECK(party.hears_now == std::vector<int16_t>(frame_units, 4000));
    if (closes) room.close();
    else (void)room.join(other, false, 100, 100);
    studio.tick(room);
    CHECK(party.hears_now.front() > 3800 && party.hears_now.front() < 4000);
    CHECK(party.hears_now[39] > 0 && party.hears_now[39] < 200 && party.hears_now[40] == 0);
    CHECK(is_silent(other) && room.over() == closes);
  }
}

TEST("a member that was ticked already is neither heard nor given a frame a second time in the tick") {
  Three three;
  three.a.say(1000);
  three.tick(2);
  three.a.sit_out(true);
  const uint32_t before = three.a.taken;
  three.tick();
  CHECK(three.a.taken == before && three.a.given == before);
  three.tick();
  CHECK(three.a.taken == before + 1 && three.a.given == before + 1);
  CHECK(three.ear.hears_now.back() == 1000);
}

TEST("a phone and a stream that are alone in a room hear each other") {
  Bench bench;
  FarEnd* far = bench.open();
  const auto inbox = StreamInbox::open();
  CHECK(bench.plane->open_stream(2, inbox.second, {StreamEncoding::pcm, 8000}, {StreamEncoding::pcm, 8000}));
  CHECK(bench.plane->open_room(100));
  for (const uint32_t id : {2u, 1u}) CHECK(bench.plane->join(id, 100, false, 100, 100));
  const std::vector<int16_t> pcm(frame_units * 40, 8000);
  CHECK(inbox.second->write(reinterpret_cast<const uint8_t*>(pcm.data()), pcm.size() * 2, 1 << 20));
  std::vector<uint8_t> frames(1 << 20);
  int loud = 0;
  for (int tick = 0; tick < 30; tick++) {
    far->say(std::vector<uint8_t>(frame_units, 0x8f));
    bench.tick();
    int16_t first = 0;
    const size_t length = bench.plane->take_frames(frames.data(), frames.size());
    if (length > 14) std::memcpy(&first, &frames[12], sizeof first);
    loud += first > 4000 ? 1 : 0;
  }
  StreamInbox::close(inbox.first);
  CHECK(loud > 20);
  std::vector<int16_t> heard;
  Decoder decoder;
  hear_coded(*far, Codec::pcmu, decoder, heard);
  CHECK(heard.size() == 30 * frame_units && heard.back() > 7500 && heard.back() < 8500);
}

TEST("a phone that is alone with another one hears what is played to it over the other, and the other alone again") {
  Bench bench;
  FarEnd* ear = bench.open();
  FarEnd* mouth = bench.open();
  CHECK(bench.plane->open_room(100));
  for (const uint32_t id : {1u, 2u}) CHECK(bench.plane->join(id, 100, false, 100, 100));
  const std::vector<int16_t> pcm(8000, 4000);
  const auto hears = [&] {
    std::vector<int16_t> heard;
    Decoder decoder;
    for (int tick = 0; tick < 20; tick++) {
      mouth->say(std::vector<uint8_t>(frame_units, 0xaf));  // 3,900
      ear->say(std::vector<uint8_t>(frame_units, 0xff));
      bench.tick();
    }
    hear_coded(*ear, Codec::pcmu, decoder, heard);
    return heard.empty() ? 0 : heard.back();
  };
  const int alone = hears();
  CHECK(alone > 3700 && alone < 4100 && bench.plane->leg(2)->relays());
  CHECK(bench.plane->play(1, 1, 8000, 100) && bench.plane->feed(1, 1, pcm.data(), pcm.size()));
  const int both = hears();
  CHECK(both > 7500 && both < 8700);
  CHECK(bench.plane->stop(1, 1));
  CHECK(hears() == alone && bench.plane->leg(2)->relays());
}

TEST("a member that is muted while it talks does not hear itself, and leaves nothing behind when it is gone") {
  Three three;
  three.a.say(1000);
  three.tick(3);
  three.room.mute(*three.a.seat(), true, three.studio.notices);
  three.tick(2);
  CHECK(is_silent(three.a) && is_silent(three.ear));
  three.b.say(300);
  three.tick(2);
  CHECK(three.a.hears_now.back() == 300 && three.ear.hears_now.back() == 300);
  three.room.drop(*three.a.seat(), three.studio.notices);
  three.tick();
  CHECK(three.ear.hears_now == std::vector<int16_t>(frame_units, 300));
}
