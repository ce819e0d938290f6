// A key is told when it goes down, once, and again as a digit when it is let go.
#include <algorithm>
#include <string>
#include <vector>

#include "kernel/codec/g711.h"
#include "kernel/tone/tone.h"
#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

constexpr uint8_t event_type = 101;

/** A phone that sends audio and telephone-events as it is told, and what the plane tells of it: `+5` a key that goes
 * down, `5` its digit, `t` before either where it came in the audio, `-` a key that is up without a digit. */
struct Phone : Bench {
  FarEnd* far = nullptr;
  std::string told;

  bool begin(bool events = true, bool tones = false) {
    far = open(Codec::pcmu, events);
    return far != nullptr && (!tones || plane->detect_tones(1, true));
  }

  /** One packet of the event that began at `began`, which does not move the clock of the audio. */
  void event(uint8_t code, uint32_t began, uint16_t units, bool end = false, bool first = false) {
    const uint32_t timestamp = far->timestamp;
    far->timestamp = began;
    far->payload_type = event_type;
    far->marker = first;
    far->say({code, static_cast<uint8_t>(end ? 0x8a : 0x0a), static_cast<uint8_t>(units >> 8),
              static_cast<uint8_t>(units & 255)});
    far->marker = false;
    far->payload_type = 0;
    far->timestamp = timestamp;
  }

  /** 20 ms of silence, or of a key's tone. */
  void say(ToneGenerator* tone = nullptr) {
    int16_t pcm[160] = {};
    if (tone != nullptr) tone->generate(pcm, 160);
    std::vector<uint8_t> octets(160);
    mulaw_encode(pcm, octets.data(), 160);
    far->say(octets);
  }

  void run(int ticks = 1) {
    for (int i = 0; i < ticks; i++) {
      tick();
      for (const Notice& notice : notices()) {
        const bool down = notice.kind == NoticeKind::key_down;
        if (notice.kind == NoticeKind::key_up) told += '-';
        if (!down && notice.kind != NoticeKind::digit) continue;
        told += notice.more[0] == 1 ? "t" : "";
        told += down ? "+" : "";
        told += static_cast<char>(notice.a);
      }
    }
  }
};

}  // namespace

TEST("a key is told as down at its first packet, once, and as a digit at its end") {
  Phone phone;
  CHECK(phone.begin());
  phone.event(5, 1000, 0, false, true);
  phone.run();
  CHECK(phone.told == "+5");
  for (uint16_t i = 1; i <= 300; i++) {  // 6 s
    phone.event(5, 1000, static_cast<uint16_t>(i * 160));
    phone.run();
  }
  CHECK(phone.told == "+5");
  for (int copy = 0; copy < 3; copy++) phone.event(5, 1000, 48'160, true);
  phone.run(50);
  CHECK(phone.told == "+55");
}

TEST("a key whose first packet is lost is told as down at the next, and one of which only the end comes as a digit") {
  Phone phone;
  CHECK(phone.begin());
  phone.event(7, 1000, 480);  // without a marker
  phone.run();
  CHECK(phone.told == "+7");
  phone.event(7, 1000, 800, true);
  phone.run();
  phone.event(8, 9000, 800, true);
  phone.run(50);
  CHECK(phone.told == "+778");
}

TEST("duplicate and reordered packets of a key make no second press") {
  Phone phone;
  CHECK(phone.begin());
  phone.event(1, 1000, 160, false, true);
  phone.event(1, 1000, 480);
  phone.far->sequence -= 1;
  phone.event(1, 1000, 480);  // the same packet again
  phone.event(1, 1000, 320);  // and one that was overtaken
  phone.run();
  phone.event(1, 1000, 800, true);
  phone.event(1, 1000, 640);  // an update behind the end
  phone.event(1, 1000, 160, false, true);
  phone.event(1, 1000, 800, true);
  phone.run(50);
  CHECK(phone.told == "+11");
  // The end of one key behind the beginning of the next.
  phone.event(2, 5000, 160, false, true);
  phone.run();
  phone.event(3, 8000, 160, false, true);
  phone.event(2, 5000, 800, true);
  phone.run();
  CHECK(phone.told == "+11+22+3");
  phone.event(3, 8000, 800, true);
  phone.run(50);
  CHECK(phone.told == "+11+22+33");
}

TEST("a key of which no more packets come is up 200 ms later, and its late end is nothing new") {
  Phone phone;
  CHECK(phone.begin());
  phone.event(9, 1000, 160, false, true);
  phone.run(9);
  CHECK(phone.told == "+9");
  phone.run(3);
  CHECK(phone.told == "+99");
  phone.event(9, 1000, 4000, true);
  phone.run(50);
  CHECK(phone.told == "+99");
}

TEST("the same key twice, the first end lost, is two presses") {
  Phone phone;
  CHECK(phone.begin());
  phone.event(4, 1000, 160, false, true);
  phone.run(2);
  phone.event(4, 3000, 160, false, true);
  phone.run();
  CHECK(phone.told == "+44+4");
  phone.event(4, 3000, 800, true);
  phone.run();
  CHECK(phone.told == "+44+44");
}

TEST("a key held for longer than a segment of 8.19 s is one press, however its segments end") {
  for (const bool ends : {false, true}) {
    Phone phone;
    CHECK(phone.begin());
    uint32_t began = 1000;
    for (int segment = 0; segment < 3; segment++, began += 0xffff) {
      for (uint32_t units = 160; units < 0xffff; units += 1600) {
        phone.event(6, began, static_cast<uint16_t>(units), false, segment == 0 && units == 160);
        phone.run(10 - 1);  // as updates come every 50 ms, and some are lost
      }
      phone.event(6, began, 0xffff, ends || segment == 2);
      phone.run();
    }
    phone.run(50);
    CHECK(phone.told == "+66");
  }
}

TEST("a key that another source was to end is up without a digit") {
  Phone phone;
  CHECK(phone.begin());
  phone.say();
  phone.event(5, 1000, 160, false, true);
  phone.run();
  CHECK(phone.told == "+5");
  phone.far->ssrc = 78;
  for (int i = 0; i < 3; i++) {
    phone.say();
    phone.run();
  }
  CHECK(phone.told == "+5-");
}

TEST("of a flood of keys no more are told as down than as digits") {
  Phone phone;
  CHECK(phone.begin());
  for (int tick = 0; tick < 500; tick++) {
    for (uint32_t i = 0; i < 20; i++)
      phone.event(static_cast<uint8_t>(i % 10), 1000 + static_cast<uint32_t>(tick) * 20'000 + i * 1000, 160);
    phone.run();
  }
  phone.run(50);
  const auto downs = std::count(phone.told.begin(), phone.told.end(), '+');
  CHECK(downs > 256 && downs <= 256 + 250);
}

TEST("a tone is told as down when it is confirmed, while it is still heard, and once") {
  for (const bool events : {false, true}) {
    Phone phone;
    CHECK(phone.begin(events, true));
    ToneGenerator tone('3', 8000, 4000);
    for (int tick = 0; tick < 15; tick++) {
      phone.say(&tone);
      phone.run();
    }
    CHECK(phone.told == "t+3");
    for (int tick = 0; tick < 400; tick++) {
      phone.say(&tone);
      phone.run();
    }
    CHECK(phone.told == "t+3");
    for (int tick = 0; tick < 50; tick++) {
      phone.say();
      phone.run();
    }
    CHECK(phone.told == "t+3t3");
  }
}

TEST("a key that comes as a tone and as an event is one press, whichever comes first") {
  for (const int lead : {0, 10}) {  // ticks by which the tone is ahead
    Phone phone;
    CHECK(phone.begin(true, true));
    ToneGenerator tone('5', 8000, 4000);
    const uint32_t began = phone.far->timestamp;
    for (int tick = 0; tick < 40 + lead; tick++) {
      phone.say(&tone);
      if (tick >= lead) phone.event(5, began, static_cast<uint16_t>((tick - lead) * 160), false, tick == lead);
      phone.run();
    }
    phone.event(5, began, 40 * 160, true);
    for (int tick = 0; tick < 60; tick++) {
      phone.say();
      phone.run();
    }
    CHECK(phone.told == (lead == 0 ? "+55" : "t+55"));
  }
}

TEST("a tone that is down when nobody listens for it any more is up without a digit") {
  Phone phone;
  CHECK(phone.begin(true, true));
  ToneGenerator tone('8', 8000, 4000);
  for (int tick = 0; tick < 15; tick++) {
    phone.say(&tone);
    phone.run();
  }
  CHECK(phone.plane->detect_tones(1, false));
  phone.run(2);
  CHECK(phone.told == "t+8-");
}
