// Orders to a plane about playbacks and recordings, and what they answer where there is nothing to order.
#include <chrono>
#include <thread>
#include <vector>

#include "test/check.h"
#include "test/plane/bench.h"
#include "test/plane/recording_files.h"

using namespace sidetone;
using namespace sidetone::test;

TEST("a playback is paused, resumed and moved by its number, and an order for any other is refused") {
  Bench bench;
  CHECK(bench.open() != nullptr);
  const std::vector<int16_t> pcm(8000, 4000);
  CHECK(!bench.plane->play(9, 7, 8000, 100) && !bench.plane->pause(9, 7, true) && !bench.plane->seek(9, 7));
  CHECK(!bench.plane->finish(9, 7) && !bench.plane->finish(1, 7));
  CHECK(bench.plane->play(1, 7, 8000, 100) && bench.plane->feed(1, 7, pcm.data(), pcm.size()));
  bench.tick();
  CHECK(!bench.plane->pause(1, 8, true) && !bench.plane->seek(1, 8) && !bench.plane->finish(1, 8));
  CHECK(!bench.plane->stop(1, 0));
  CHECK(bench.plane->pause(1, 7, true) && bench.plane->participant(1)->player().paused());
  CHECK(bench.plane->pause(1, 7, false) && !bench.plane->participant(1)->player().paused());
  (void)bench.notices();
  CHECK(bench.plane->seek(1, 7));
  const auto told = bench.notices();
  CHECK(told.size() == 1 && told[0].kind == NoticeKind::playback_moved && told[0].leg == 1);
  CHECK(told[0].a == 7 && told[0].b == frame_units);
  Counters counters;
  CHECK(!bench.plane->counters(9, counters));
}

TEST("a recording ends with its leg, which is told with its last counters") {
  Bench bench;
  Folder folder;
  FarEnd* far = bench.open();
  RecorderOptions options;
  options.id = 70;
  options.path = folder.file("leg.wav");
  CHECK(bench.plane->record(1, options) && !bench.plane->record(9, options));
  for (int tick = 0; tick < 10; tick++) {
    far->say(std::vector<uint8_t>(frame_units, 0x8f));
    bench.tick();
  }
  Counters counters;
  CHECK(bench.plane->close(1, counters, bench.now) && counters.received == 10 && counters.sent == 10);
  bool is_ended = false;
  for (int i = 0; i < 1000 && !is_ended; i++) {
    bench.tick();
    for (const Notice& notice : bench.notices())
      is_ended = is_ended || (notice.kind == NoticeKind::recording_ended && notice.leg == 70 && notice.a == 200);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(is_ended);
  const Wav wav = read_wav(options.path);
  CHECK(wav.whole && wav.samples.size() == 10 * frame_units && wav.samples.back() > 10'000);
}

TEST("legs, rooms and streams are numbered together") {
  Bench bench;
  CHECK(bench.open() != nullptr && bench.plane->open_room(100));
  const auto inbox = StreamInbox::open();
  const StreamFormat format{StreamEncoding::pcm, 8000};
  for (const uint32_t taken : {1u, 100u}) {
    CHECK(!bench.plane->open_stream(taken, inbox.second, format, format) && !bench.plane->open_room(taken));
    CHECK(bench.plane->open(taken, own(first_port), own(first_port + 1)) == EEXIST);
  }
  CHECK(!bench.plane->open_stream(2, nullptr, format, format));
  StreamInbox::close(inbox.first);
}
