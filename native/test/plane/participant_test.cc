// What a party of a call says and hears, as its recordings, detectors and room have it.
#include "plane/participant.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/check.h"
#include "test/plane/party.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

/** A sample of the key 5, whose tones are stretched. */
int16_t key_sample(size_t at, uint32_t hz, double stretch) {
  const double angle = 2 * 3.14159265358979 * stretch * static_cast<double>(at) / hz;
  return static_cast<int16_t>(std::lrint(5000 * (std::sin(770 * angle) + std::sin(1336 * angle))));
}

}  // namespace

TEST("a recording of a call holds what was said and what was heard, mixed and bounded, and silence where was neither") {
  Studio studio;
  Party party(1);
  const RecorderOptions options = studio.options("call.wav");
  party.record(std::make_unique<Recorder>(options));
  party.say(1000);
  studio.tick(party);
  play(party.player(), 1, 200, frame_units);
  studio.tick(party);  // both
  party.say(0);
  play(party.player(), 2, 300, frame_units);
  studio.tick(party);                                                    // it hears only
  std::fill(party.said_now.begin(), party.said_now.end(), int16_t{77});  // what a frame that is not heard holds
  studio.tick(party);                                                    // neither
  party.records = false;
  studio.tick(party);
  party.records = true;
  party.say(30'000);
  play(party.player(), 3, 30'000, frame_units);
  studio.tick(party);
  party.say(0);
  studio.tick(party);
  CHECK(party.recorder(7) != nullptr && party.recorder(8) == nullptr);
  party.recorder(7)->stop();
  CHECK(studio.ended(party));
  CHECK((frames(options.path) == std::vector<int16_t>{1000, 1200, 300, 0, 32'767, 0}));
  CHECK(party.recorder(7) == nullptr);
}

TEST("a recording that begins in the middle of a call has nothing of what was said before it") {
  Studio studio;
  Party party(1);
  party.say(1000);
  const RecorderOptions first = studio.options("first.wav", 7);
  party.record(std::make_unique<Recorder>(first));
  studio.tick(party, 2);
  party.say(0);
  const RecorderOptions second = studio.options("second.wav", 8);
  party.take(studio.now, studio.notices);
  party.record(std::make_unique<Recorder>(second));
  party.give(studio.now, studio.notices);
  studio.tick(party);
  party.recorder(7)->stop();
  party.say(500);
  studio.tick(party, 2);
  party.recorder(8)->stop();
  CHECK(studio.ended(party, 2));
  CHECK((frames(first.path) == std::vector<int16_t>{1000, 1000, 0, 0}));
  CHECK((frames(second.path) == std::vector<int16_t>{0, 0, 500, 500}));
}

TEST("a recording goes on where the call's frames grow longer, with nothing of the shorter ones") {
  Studio studio;
  Party party(1);
  const RecorderOptions options = studio.options("longer.wav");
  party.record(std::make_unique<Recorder>(options));
  party.say(1000);
  studio.tick(party, 2);
  party.turn(48'000);
  studio.tick(party, 3);
  party.turn(8000);
  studio.tick(party);
  party.recorder(7)->stop();
  CHECK(studio.ended(party));
  const std::vector<int16_t> kept = frames(options.path);
  CHECK(kept.size() == 6);
  for (const int16_t level : kept) CHECK(std::abs(level - 1000) < 20);
}

TEST("a pause of the plane is a gap in the recordings of a call") {
  Studio studio;
  Party party(1);
  RecorderOptions options = studio.options("gap.wav");
  options.include_gaps = true;
  party.record(std::make_unique<Recorder>(options));
  party.say(1000);
  studio.tick(party);
  party.skip(3);
  studio.tick(party);
  party.recorder(7)->stop();
  CHECK(studio.ended(party));
  CHECK((frames(options.path) == std::vector<int16_t>{1000, 0, 0, 0, 1000}));
}

TEST(
    "speech that is told of a recording is what the far end says, never what is played to it, nor what is left of it") {
  Studio studio;
  Party party(1);
  party.record(std::make_unique<Recorder>(studio.options("quiet.wav", 7)));
  party.record(std::make_unique<Recorder>(studio.options("speech.wav", 8, true)));
  play(party.player(), 1, 8000, 8000);
  studio.tick(party, 30);
  CHECK(studio.told(NoticeKind::speech_started) == 0);
  party.say(2000);
  studio.tick(party, 10);
  CHECK(studio.told(NoticeKind::speech_started) == 1);
  party.say(0);
  studio.tick(party, 30);
  CHECK(studio.told(NoticeKind::speech_ended) == 1);
  std::fill(party.said_now.begin(), party.said_now.end(), int16_t{2000});  // which is not heard
  studio.tick(party, 10);
  CHECK(studio.told(NoticeKind::speech_started) == 1);
  for (const Notice& notice : studio.notices)
    CHECK((notice.kind != NoticeKind::speech_started && notice.kind != NoticeKind::speech_ended) || notice.leg == 8);
  for (const uint32_t id : {7u, 8u}) party.recorder(id)->stop();
  CHECK(studio.ended(party, 2));
}

TEST("a far end is decoded while anyone needs it, and no longer") {
  Studio studio;
  Party party(1);
  CHECK(!party.is_wanted());
  party.record(std::make_unique<Recorder>(studio.options("a.wav", 7)));
  CHECK(party.is_wanted());
  party.detect_tones(true);
  party.record(std::make_unique<Recorder>(studio.options("b.wav", 8)));
  party.recorder(7)->stop();
  CHECK(studio.ended(party));
  CHECK(party.is_wanted());
  party.recorder(8)->stop();
  CHECK(studio.ended(party, 2));
  CHECK(party.is_wanted());
  party.detect_tones(false);
  CHECK(!party.is_wanted());
  party.detect_answerer(100);
  CHECK(party.is_wanted());
  studio.tick(party, 50);
  CHECK(studio.told(NoticeKind::answerer) == 1 && !party.is_wanted());
  party.record(std::make_unique<Recorder>(studio.options("c.wav", 9)));
  party.recorder(9)->stop();
  CHECK(studio.ended(party, 3));
  CHECK(!party.is_wanted());
  CHECK((party.attentions == std::vector<bool>{true, false, true, false, true, false}));
}

TEST("a recording of a muted member holds what it says, and that of another one does not") {
  Studio studio;
  Party muted(1);
  Party other(2);
  Room room(100, studio.filters);
  const RecorderOptions own = studio.options("muted.wav", 7);
  const RecorderOptions theirs = studio.options("other.wav", 8);
  muted.record(std::make_unique<Recorder>(own));
  other.record(std::make_unique<Recorder>(theirs));
  (void)room.join(muted, true, 100, 100);
  (void)room.join(other, false, 50, 100);
  muted.say(1000);
  other.say(400);
  studio.tick(room, 3);
  CHECK(is_silent(other) && muted.hears_now.back() == 200);
  CHECK(!muted.room_only);  // its recording wants to hear it too
  muted.recorder(7)->stop();
  other.recorder(8)->stop();
  CHECK(studio.ended(room, 2));
  const std::vector<int16_t> kept = frames(own.path);
  CHECK(kept.size() == 3 && kept.back() == 1200);
  CHECK((frames(theirs.path) == std::vector<int16_t>{400, 400, 400}));
}

TEST("hold music is heard by the member that is alone, over its own playback, and recorded nowhere") {
  Studio studio;
  Party party(1);
  Room room(100, studio.filters);
  const RecorderOptions of_leg = studio.options("leg.wav", 7);
  const RecorderOptions of_room = studio.options("room.wav", 8);
  party.record(std::make_unique<Recorder>(of_leg));
  room.record(std::make_unique<Recorder>(of_room));
  room.open_music(200);
  play(*room.music(), 1, 500, 8000 * 4);
  (void)room.join(party, false, 100, 100);
  party.say(1000);
  studio.tick(room, 3);
  CHECK(party.hears_something && party.hears_now.back() == 500);
  play(party.player(), 2, 70, 8000);
  studio.tick(room, 2);
  CHECK(party.hears_now.back() == 570);
  CHECK(!party.room_only);
  party.recorder(7)->stop();
  room.recorder(8)->stop();
  CHECK(studio.ended(room, 2));
  CHECK((frames(of_leg.path) == std::vector<int16_t>{1000, 1000, 1000, 1070, 1070}));
  CHECK((frames(of_room.path) == std::vector<int16_t>(5, 1000)));
  party.player().clear();
  studio.tick(room, 2);
  CHECK(!party.room_only && party.hears_now.back() == 500);  // it speaks, which alone is no reason to hear the room
}

TEST("hold music is as loud as the room is for the member that hears it") {
  Studio studio;
  Party party(1);
  Room room(100, studio.filters);
  room.open_music(200);
  play(*room.music(), 1, 500, 8000 * 4);
  Seat& seat = room.join(party, false, 100, 40);
  studio.tick(room, 3);
  CHECK(party.hears_now.back() == 200);
  room.set_volume(seat, false, 0);
  studio.tick(room, 3);
  CHECK(party.hears_now.back() == 0);
  room.set_volume(seat, false, 100);
  room.set_volume(seat, true, 0);
  studio.tick(room, 3);
  CHECK(party.hears_now.back() == 500);
}

TEST("a member hears its own playback over its room, and the room alone while that is paused or waits for its source") {
  Studio studio;
  Party ear(1);
  Party mouth(2);
  Room room(100, studio.filters);
  (void)room.join(ear, false, 100, 100);
  (void)room.join(mouth, false, 100, 100);
  mouth.say(1000);
  studio.tick(room, 2);
  CHECK(ear.room_only && ear.hears_now.back() == 1000 && is_silent(mouth));
  const std::vector<int16_t> pcm(4 * frame_units, 200);
  ear.player().play(1, 8000, 100);
  CHECK(ear.player().feed(1, pcm.data(), pcm.size()));
  studio.tick(room, 2);
  CHECK(!ear.room_only && ear.hears_now.back() == 1200 && is_silent(mouth));
  CHECK(ear.player().pause(1));
  studio.tick(room, 2);
  CHECK(!ear.room_only && ear.hears_now.back() == 1000);
  CHECK(ear.player().resume(1));
  studio.tick(room, 3);
  CHECK(ear.hears_now.back() == 1000);
  ear.player().clear();
  studio.tick(room, 2);
  CHECK(ear.room_only && ear.hears_now == std::vector<int16_t>(frame_units, 1000));
}

TEST("keys are heard at 8 and 16 kHz, where the rate changes too, and a rate that has no detector tells none") {
  Studio studio;
  Party party(1);
  party.detect_tones(true);
  // One key, and at 48 kHz also what a detector of 8 kHz would take for one.
  const auto dial = [&](uint32_t hz, double stretch) {
    party.turn(hz);
    studio.notices.clear();
    party.says = true;
    for (int tick = 0; tick < 5; tick++) {
      for (size_t i = 0; i < party.count(); i++) {
        party.said_now[i] = key_sample(static_cast<size_t>(tick) * party.count() + i, hz, stretch);
      }
      studio.tick(party);
    }
    party.say(0);
    studio.tick(party, 5);
    std::string keys;
    for (const Notice& notice : studio.notices) {
      if (notice.kind == NoticeKind::digit && notice.leg == 1 && notice.more[0] == 1)
        keys += static_cast<char>(notice.a);
    }
    return keys;
  };
  CHECK(dial(8000, 1) == "5" && dial(16'000, 1) == "5" && dial(8000, 1) == "5");
  CHECK(dial(48'000, 1).empty() && dial(48'000, 6).empty());
  CHECK(dial(8000, 1) == "5");
  party.detect_tones(false);
  CHECK(dial(8000, 1).empty());
}

TEST("a key that is down stays down when its detection is asked for again, and is forgotten when that ends") {
  for (const bool ends : {false, true}) {
    Studio studio;
    Party party(1);
    party.detect_tones(true);
    party.says = true;
    for (int tick = 0; tick < 6; tick++) {
      if (tick == 3 && ends) party.detect_tones(false);
      if (tick == 3) party.detect_tones(true);
      for (size_t i = 0; i < party.count() && (tick < 3 || !ends); i++)
        party.said_now[i] = key_sample(static_cast<size_t>(tick) * party.count() + i, 8000, 1);
      if (tick == 3 && ends) party.say(0);
      studio.tick(party);
    }
    party.say(0);
    studio.tick(party, 5);
    CHECK(studio.told(NoticeKind::digit) == (ends ? 0 : 1));
    if (!ends) CHECK(studio.notices.back().b > 80);
  }
}

TEST("a greeting that is over is told of a machine, with the beep behind it, and of a person there is none") {
  for (const int how : {0, 1, 2}) {  // a person, a machine, one that beeps
    Studio studio;
    Party party(1);
    party.detect_answerer(30'000);
    std::mt19937 random(7);
    std::uniform_real_distribution<double> noise(-6000, 6000);
    party.says = true;
    const int words_until = how == 0 ? 50 : 325;
    for (int tick = 0; tick < 700; tick++) {
      for (size_t i = 0; i < party.count(); i++) {
        const size_t at = static_cast<size_t>(tick) * party.count() + i;
        const bool words = tick >= 25 && tick < words_until && tick % 16 < 12;
        const bool beep = how == 2 && tick >= 360 && tick < 375;
        const double sample = words  ? noise(random)
                              : beep ? 6000 * std::sin(2 * 3.14159265358979 * 1000 * static_cast<double>(at) / 8000)
                                     : 0;
        party.said_now[i] = static_cast<int16_t>(std::lrint(sample));
      }
      studio.tick(party);
    }
    CHECK(studio.told(NoticeKind::answerer) == 1 && studio.told(NoticeKind::greeting_ended) == (how == 0 ? 0 : 1));
    const Notice& last = studio.notices.back();
    CHECK(studio.notices.front().a == static_cast<uint32_t>(how == 0 ? Answerer::human : Answerer::machine));
    if (how > 0) CHECK(last.kind == NoticeKind::greeting_ended && last.leg == 1 && last.a == (how == 2 ? 1 : 0));
    CHECK(!party.is_wanted());
  }
}
