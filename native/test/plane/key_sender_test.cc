// Keys as they are sent: tick by tick, and their tones as our own detector hears them.
#include "plane/leg/key_sender.h"

#include <string>
#include <vector>

#include "kernel/tone/tone.h"
#include "test/check.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

TEST("a key lasts as long as it was asked for, and a gap follows before the next") {
  KeySender sender;
  CHECK(sender.add(7, "1#", 50, 40));
  std::vector<KeySender::Step> steps;
  while (sender.busy()) steps.push_back(sender.next());
  // 50 ms are three ticks, then two of gap, for each key.
  CHECK(steps.size() == 10);
  CHECK(steps[0].key == '1' && steps[0].from_ms == 0 && steps[0].until_ms == 20 && !steps[0].last);
  CHECK(steps[2].key == '1' && steps[2].until_ms == 50 && steps[2].last);
  CHECK(steps[3].key == 0 && steps[4].key == 0);
  CHECK(steps[5].key == '#' && steps[5].from_ms == 0);
  CHECK(steps[8].finished == 0 && steps[9].finished == 7);
}

TEST("a pause is half a second or one, and is no key") {
  KeySender sender;
  CHECK(sender.add(1, "wW", 100, 100));
  int ticks = 0;
  while (sender.busy()) {
    CHECK(sender.next().key == 0);
    ticks++;
  }
  CHECK(ticks == 75);
}

TEST("batches are sent in order, and too many are refused") {
  KeySender sender;
  for (uint32_t i = 1; i <= KeySender::batches_max; i++) CHECK(sender.add(i, "5", 40, 40));
  CHECK(!sender.add(99, "5", 40, 40));
  uint32_t finished = 0;
  while (sender.busy()) {
    const KeySender::Step step = sender.next();
    if (step.finished != 0) CHECK(step.finished == ++finished);
  }
  CHECK(finished == KeySender::batches_max);
}

TEST("every key is heard by our own detector at 40 ms, at 8 and at 16 kHz") {
  const std::string keys = "0123456789*#ABCD";
  for (const size_t count : {size_t{160}, size_t{320}}) {
    KeySender sender;
    CHECK(sender.add(1, keys, 40, 60));
    ToneDetector detector(static_cast<uint32_t>(count * 50));
    std::string heard;
    while (sender.busy()) {
      const KeySender::Step step = sender.next();
      std::vector<int16_t> pcm(count, 0);
      if (step.key != 0) KeySender::tones(step, pcm.data(), count);
      ToneDetector::Key key;
      if (detector.process(pcm.data(), count, key)) heard += key.key;
    }
    CHECK(heard == keys);
  }
}

TEST("event codes are those of RFC 4733") {
  CHECK(KeySender::event_of('0') == 0 && KeySender::event_of('9') == 9);
  CHECK(KeySender::event_of('*') == 10 && KeySender::event_of('#') == 11);
  CHECK(KeySender::event_of('A') == 12 && KeySender::event_of('D') == 15);
}

}  // namespace
