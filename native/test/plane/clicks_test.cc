// No click, whatever happens to a sound and wherever in its period: the tones here are at a peak, or anywhere, at the
// edge of a frame, where a ramp that is missing is a step of thousands.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "plane/audio/player.h"
#include "test/check.h"
#include "test/plane/bench.h"
#include "test/plane/recording_files.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

constexpr double pi = 3.14159265358979323846;
constexpr double phases[] = {pi / 2, -pi / 2, 0.9, 2.5};

/** A tone of 100 Hz, of which a frame of 20 ms has two whole periods: every frame begins at this phase. */
int16_t tone(size_t at, double phase, uint32_t rate_hz = 8000) {
  return static_cast<int16_t>(std::lrint(8000 * std::sin(2 * pi * 100 * static_cast<double>(at) / rate_hz + phase)));
}

std::vector<int16_t> sung(size_t count, double phase, size_t from = 0, uint32_t rate_hz = 8000) {
  std::vector<int16_t> out(count);
  for (size_t i = 0; i < count; i++) out[i] = tone(from + i, phase, rate_hz);
  return out;
}

/** The largest step from one sample to the next. The tone's own is 628, that of its ramp 200. */
int steepest(const std::vector<int16_t>& pcm) {
  int most = 0;
  for (size_t i = 1; i < pcm.size(); i++) most = std::max(most, std::abs(pcm[i] - pcm[i - 1]));
  return most;
}

void run(Player& player, std::vector<int16_t>& out, int frames, uint32_t rate_hz = 8000) {
  Notices notices;
  for (int i = 0; i < frames; i++) {
    int16_t pcm[frame_max];
    if (!player.frame(pcm, rate_hz / 50, rate_hz)) std::fill_n(pcm, frame_max, int16_t{0});
    out.insert(out.end(), pcm, pcm + rate_hz / 50);
    player.progress(1, {}, notices);
  }
}

/** A far end that says the tone and hears what its leg sends. */
struct Voice {
  FarEnd* far;
  double phase = pi / 2;
  Codec codec = Codec::pcmu;
  size_t at = 0;
  Encoder encoder{};
  Decoder decoder{};
  std::vector<int16_t> pcm{};

  void say() {
    const size_t count = codec_samples(codec, frame_units);
    const auto frame = sung(count, phase, at, codec_rate_hz(codec));
    at += count;
    say_coded(*far, codec, encoder, frame);
  }
  void hear() { hear_coded(*far, codec, decoder, pcm); }
};

constexpr int smooth = 1500;  // the tone's own step, its ramp's, and two of mu-law, which are 256 there

struct Meeting {
  Bench bench;
  Voice mouth;
  Voice ear;
  Voice other;

  explicit Meeting(double phase, Codec codec = Codec::pcmu)
      : mouth{bench.open(codec), phase, codec}, ear{bench.open()}, other{bench.open()} {
    bench.plane->open_room(100);
  }
  void run(int ticks) {
    for (int i = 0; i < ticks; i++) {
      mouth.say();
      bench.tick();
      ear.hear();
      other.hear();
      mouth.far->heard();
    }
  }
  /** Agrees with the mouth anew. */
  void negotiate(Codec codec, bool holds = false) {
    Negotiated agreed;
    agreed.rtp = mouth.far->here();
    agreed.rtcp = nowhere();
    agreed.codec = mouth.codec = codec;
    agreed.payload_type = mouth.far->payload_type = codec == Codec::g722 ? 9 : codec == Codec::pcma ? 8 : 0;
    agreed.holding = holds;
    agreed.receive = !holds;
    bench.plane->negotiate(1, agreed, bench.now);
  }
  /** Goes on until that is told, at most ten seconds. */
  bool tells(NoticeKind kind) {
    for (int i = 0; i < 1000; i++) {
      const auto told = bench.notices();
      if (std::any_of(told.begin(), told.end(), [kind](const Notice& notice) { return notice.kind == kind; }))
        return true;
      run(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  bool join(uint32_t id) { return bench.plane->join(id, 100, false, 100, 100); }
  bool is_loud(const Voice& voice) const {
    const size_t last = std::min<size_t>(voice.pcm.size(), 320);
    return std::any_of(voice.pcm.end() - static_cast<std::ptrdiff_t>(last), voice.pcm.end(),
                       [](int16_t sample) { return sample > 5000; });
  }
};

}  // namespace

TEST("a sound that is paused, stopped or replaced before it has risen again leaves no click") {
  for (const double phase : phases) {
    for (int how = 0; how < 3; how++) {
      for (const size_t first : {size_t{800}, size_t{950}}) {  // 950 run dry in the last ten samples of a frame
        Player player;
        const auto a = sung(8000, phase);
        player.play(1, 8000, 100);
        CHECK(player.feed(1, a.data(), first));
        std::vector<int16_t> out;
        run(player, out, first == 950 ? 6 : 7);
        CHECK(player.feed(1, a.data() + first, 1600));
        if (how == 0) CHECK(player.pause(1));
        if (how == 1) player.clear();
        if (how == 2) {
          player.play(2, 8000, 100);
          CHECK(player.feed(2, a.data(), 1600));
        }
        run(player, out, 3);
        if (how == 0) {
          CHECK(player.resume(1) && player.pause(1));
          run(player, out, 2);
        }
        CHECK(steepest(out) < smooth);
      }
    }
  }
}

TEST("a sound that is stopped before any of it was heard is not heard at all") {
  Player player;
  const auto a = sung(800, pi / 2);
  player.play(1, 8000, 100);
  CHECK(player.feed(1, a.data(), a.size()));
  player.clear();
  CHECK(!player.audible());
}

TEST("the ramp of a stop goes on where the rate of a leg falls in it") {
  Player player;
  const std::vector<int16_t> flat(48'000, 8000);
  player.play(1, 48'000, 100);
  CHECK(player.feed(1, flat.data(), flat.size()));
  std::vector<int16_t> out;
  run(player, out, 5, 48'000);
  player.clear();
  run(player, out, 3, 8000);
  CHECK(steepest(out) < 100 && out.back() == 0);
}

TEST("no order of play, seek, pause, resume, stop, volume and want of sound makes a click, at any phase") {
  for (unsigned seed = 1; seed <= 400; seed++) {
    std::mt19937 random(seed);
    const auto below = [&random](size_t most) { return static_cast<size_t>(random() % most); };
    Player player;
    uint32_t playback = 0;
    size_t fed = 0;
    double phase = 0;
    std::vector<int16_t> out;
    for (int step = 0; step < 120; step++) {
      uint32_t taken = 0;
      const size_t what = below(16);
      if (what == 0) player.play(++playback, 8000, static_cast<int32_t>(below(3) * 100));
      if (what == 1) (void)player.seek(playback, taken);
      if (what <= 1) {
        fed = 0;
        phase = static_cast<double>(below(628)) / 100;
      }
      if (what == 2) (void)player.pause(playback);
      if (what == 3) (void)player.resume(playback);
      if (what == 4) player.clear();
      if (what == 5) (void)player.set_volume(playback, static_cast<int32_t>(below(3) * 100));
      if (what >= 7 && what < 10) {
        auto pcm = sung(below(1000) + 1, phase, fed);
        // A file may begin as loud as it likes, which is no click of ours: these begin softly.
        for (size_t i = 0; i < pcm.size(); i++)
          pcm[i] = static_cast<int16_t>(pcm[i] / 2 * static_cast<int>(std::min<size_t>(fed + i, 80)) / 80);
        if (player.feed(playback, pcm.data(), pcm.size())) fed += pcm.size();
      }
      if (what >= 10) run(player, out, 1);
    }
    // Two tones at 200 % at once, each with its ramp and that of its volume.
    if (steepest(out) >= 2600) std::printf("  seed %u: a step of %d\n", seed, steepest(out));
    CHECK(steepest(out) < 2600);
  }
}

TEST("nothing that happens to a member of a room makes a click for the others, at any phase of what it says") {
  for (const double phase : phases) {
    Meeting meeting(phase);
    Plane& plane = *meeting.bench.plane;
    CHECK(meeting.join(2) && meeting.join(3));
    meeting.run(15);
    CHECK(meeting.join(1));
    meeting.run(15);
    CHECK(meeting.is_loud(meeting.ear));
    for (const bool muted : {true, false}) {
      CHECK(plane.mute(1, muted));
      meeting.run(5);
    }
    for (const int32_t percent : {0, 100, 20, 100}) {
      CHECK(plane.volume(1, true, percent));
      meeting.run(5);
      CHECK(plane.volume(2, false, percent));
      meeting.run(5);
    }
    CHECK(plane.leave(1));
    meeting.run(5);
    CHECK(meeting.join(1));
    meeting.run(5);
    CHECK(plane.drop(1));
    meeting.run(5);
    CHECK(meeting.join(1));
    meeting.run(5);
    CHECK(plane.leave(3));  // two are left, and what one says is passed on
    meeting.run(30);
    CHECK(meeting.join(3));
    meeting.run(20);
    CHECK(plane.leave(3));
    meeting.run(30);
    CHECK(plane.mute(1, true));
    meeting.run(5);
    CHECK(plane.mute(1, false));
    meeting.run(30);
    Counters counters;
    CHECK(plane.close(1, counters, meeting.bench.now));
    for (int tick = 0; tick < 5; tick++) {
      meeting.bench.tick();
      meeting.ear.hear();
    }
    CHECK(steepest(meeting.ear.pcm) < smooth);
    CHECK(steepest(meeting.other.pcm) < smooth);
  }
}

TEST(
    "a member becomes a coach, coaches another one and is gone, in any order of seats and at any rate, without a "
    "click") {
  for (const Codec codec : {Codec::pcmu, Codec::g722}) {
    for (const bool is_first : {true, false}) {
      for (int end = 0; end < 3; end++) {
        for (const double phase : phases) {
          Meeting meeting(phase, codec);
          Plane& plane = *meeting.bench.plane;
          if (is_first) CHECK(meeting.join(1));
          CHECK(meeting.join(2) && meeting.join(3));
          if (!is_first) CHECK(meeting.join(1));
          meeting.run(20);
          CHECK(plane.coach(1, 2));
          meeting.run(5);
          CHECK(plane.coach(1, 2));
          meeting.run(5);
          CHECK(meeting.is_loud(meeting.ear) && !meeting.is_loud(meeting.other));
          CHECK(plane.coach(1, 3));
          meeting.run(8);
          CHECK(!meeting.is_loud(meeting.ear) && meeting.is_loud(meeting.other));
          CHECK(plane.coach(1, 2));
          meeting.run(8);
          CHECK(meeting.is_loud(meeting.ear));
          if (end == 0) CHECK(plane.leave(1));
          if (end == 1) CHECK(plane.drop(1));
          if (end == 2) CHECK(plane.coach(1, 0));
          meeting.run(8);
          CHECK(!meeting.is_loud(meeting.ear));
          const int most = codec == Codec::g722 ? 2000 : smooth;  // its decoder finds its way into the first frame
          CHECK(steepest(meeting.ear.pcm) < most);
          CHECK(steepest(meeting.other.pcm) < most);
        }
      }
    }
  }
}

TEST("a coach that is gone makes no click for the one who hears others meanwhile") {
  for (const bool drops : {true, false}) {
    for (const double phase : phases) {
      Meeting meeting(phase);
      meeting.other.phase = phase + 1.2;
      Plane& plane = *meeting.bench.plane;
      CHECK(meeting.join(1) && meeting.join(2) && meeting.join(3));
      CHECK(plane.coach(1, 2));
      const auto talk = [&meeting](int ticks) {
        for (int i = 0; i < ticks; i++) {
          meeting.other.say();
          meeting.run(1);
        }
      };
      talk(30);
      CHECK(meeting.is_loud(meeting.ear));
      if (drops) CHECK(plane.drop(1));
      else CHECK(plane.leave(1));
      talk(8);
      CHECK(meeting.is_loud(meeting.ear));  // the other one talks on
      CHECK(steepest(meeting.ear.pcm) < 2 * smooth);
    }
  }
}

TEST("hold music is no click for one who joins in the tick in which the only other one is gone") {
  Bench bench;
  CHECK(bench.plane->open_room(100) && bench.plane->open_music(100, 200));
  Voice a{bench.open()};
  Voice b{bench.open()};
  const std::vector<int16_t> pcm(8000 * 2, 8000);
  CHECK(bench.plane->play(200, 1, 8000, 100) && bench.plane->feed(200, 1, pcm.data(), pcm.size()));
  CHECK(bench.plane->join(1, 100, false, 100, 100));
  for (int tick = 0; tick < 5; tick++) bench.tick();
  CHECK(bench.plane->drop(1) && bench.plane->join(2, 100, false, 100, 100));
  for (int tick = 0; tick < 3; tick++) bench.tick();
  b.hear();
  CHECK(b.pcm.back() > 7000 && steepest(b.pcm) < smooth);
}

TEST("a member whose codec is negotiated anew, to another rate and back, makes no click for the others") {
  for (const double phase : phases) {
    Meeting meeting(phase);
    CHECK(meeting.join(1) && meeting.join(2) && meeting.join(3));
    meeting.run(15);
    for (const Codec codec : {Codec::g722, Codec::pcmu}) {
      meeting.negotiate(codec);
      meeting.mouth.at = 0;
      meeting.run(15);
      CHECK(meeting.is_loud(meeting.ear));
    }
    CHECK(steepest(meeting.ear.pcm) < 2000);  // G.722's decoder finds its way into the first frame
    CHECK(steepest(meeting.other.pcm) < 2000);
  }
}

TEST("a recording has no click where the codec of its call is negotiated anew, to another rate and back") {
  for (const uint32_t rate_hz : {8000u, 16000u}) {
    for (const double phase : phases) {
      Folder folder;
      Meeting meeting(phase);
      meeting.run(10);
      RecorderOptions options;
      options.id = 900;
      options.path = folder.file("call.wav");
      options.rate_hz = rate_hz;
      CHECK(meeting.bench.plane->record(1, options));
      for (const Codec codec : {Codec::g722, Codec::pcmu}) {
        meeting.run(20);
        meeting.negotiate(codec);
        meeting.mouth.at = 0;
      }
      meeting.run(20);
      CHECK(meeting.bench.plane->stop_recording(1, options.id));
      CHECK(meeting.tells(NoticeKind::recording_ended));
      const Wav wav = read_wav(options.path);
      CHECK(wav.whole && wav.samples.size() > rate_hz);
      const std::vector<int16_t> heard(wav.samples.begin() + rate_hz / 5, wav.samples.end());
      CHECK(steepest(heard) < 3500);  // G.722's decoder finds its way into the first frame
    }
  }
}

TEST("a member that goes on as another source, or in the other law, makes no click for the others, bridged or not") {
  for (const bool is_bridged : {false, true}) {
    for (const double phase : phases) {
      Meeting meeting(phase);
      CHECK(meeting.join(1) && meeting.join(2) && (is_bridged || meeting.join(3)));
      meeting.run(40);
      CHECK(meeting.bench.plane->leg(1)->relays() == is_bridged);
      for (const Codec codec : {Codec::pcmu, Codec::pcma}) {
        FarEnd& far = *meeting.mouth.far;
        far.ssrc += 1;
        far.timestamp += 123'456;
        far.sequence = static_cast<uint16_t>(far.sequence + 777);
        if (codec == Codec::pcma) meeting.negotiate(codec);
        meeting.run(40);
        CHECK(meeting.is_loud(meeting.ear));
      }
      CHECK(steepest(meeting.ear.pcm) < smooth);
    }
  }
}

TEST("a far end that falls silent in the middle of a wave, on hold or not, fades out without a click") {
  for (const bool holds : {false, true}) {
    for (const double phase : phases) {
      Meeting meeting(phase);
      CHECK(meeting.join(1) && meeting.join(2) && meeting.join(3));
      meeting.run(20);
      if (holds) meeting.negotiate(Codec::pcmu, true);
      for (int tick = 0; tick < 20; tick++) {
        if (holds) meeting.mouth.say();
        meeting.bench.tick();
        meeting.ear.hear();
      }
      CHECK(steepest(meeting.ear.pcm) < 800 && meeting.ear.pcm.back() == 0);
    }
  }
}

TEST("a bridge of two makes no click where a leg had packets of 30 ms before") {
  Bench bench;
  CHECK(bench.plane->open_room(100));
  Voice a{bench.open()};
  Voice b{bench.open()};
  CHECK(a.far != nullptr && b.far != nullptr);
  Negotiated agreed;
  agreed.rtp = b.far->here();
  agreed.rtcp = nowhere();
  agreed.event_payload_type = -1;
  for (const uint32_t ptime : {30u, 20u}) {
    agreed.ptime_ms = ptime;
    CHECK(bench.plane->negotiate(2, agreed, bench.now));
    for (int i = 0; i < 2; i++) bench.tick();
  }
  for (const uint32_t leg : {1u, 2u}) CHECK(bench.plane->join(leg, 100, false, 100, 100));
  const auto talk = [&](int ticks) {
    for (int i = 0; i < ticks; i++) {
      a.say();
      bench.tick();
      b.hear();
    }
  };
  talk(60);
  CHECK(bench.plane->leg(1)->relays());
  CHECK(bench.plane->mute(1, true));
  talk(5);
  CHECK(steepest(b.pcm) < smooth);
}
