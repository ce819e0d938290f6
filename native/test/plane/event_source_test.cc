// Telephone events under an SSRC of their own, beside the audio of another.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

/** A gateway that numbers its events by themselves, and goes on to send audio meanwhile. */
struct Gateway : Bench {
  FarEnd* far = nullptr;
  uint32_t event_ssrc = 0xe0e0e0e0;
  uint16_t event_sequence = 40'000;
  std::string told;

  bool begin() {
    far = open(Codec::pcmu, true);
    return far != nullptr;
  }

  void event(uint8_t code, uint32_t began, uint16_t units, bool end = false) {
    const uint32_t timestamp = std::exchange(far->timestamp, began);
    std::swap(far->ssrc, event_ssrc);
    std::swap(far->sequence, event_sequence);
    far->payload_type = 101;
    far->say({code, static_cast<uint8_t>(end ? 0x8a : 0x0a), static_cast<uint8_t>(units >> 8),
              static_cast<uint8_t>(units & 255)});
    far->payload_type = 0;
    std::swap(far->sequence, event_sequence);
    std::swap(far->ssrc, event_ssrc);
    far->timestamp = timestamp;
  }

  /** Ticks, each with 20 ms of audio unless the gateway is quiet. */
  void run(int ticks = 1, bool quiet = false) {
    for (int i = 0; i < ticks; i++) {
      if (!quiet) far->say(std::vector<uint8_t>(160, 0xff));
      tick();
      for (const Notice& notice : notices())
        if (notice.kind == NoticeKind::digit) told += static_cast<char>(notice.a);
    }
  }

  /** A key of 100 ms, its end three times. */
  void press(uint8_t code, uint32_t began, bool quiet = false) {
    for (uint16_t i = 1; i <= 5; i++) {
      event(code, began, static_cast<uint16_t>(i * 160));
      run(1, quiet);
    }
    for (int copy = 0; copy < 3; copy++) event(code, began, 960, true);
    run(10, quiet);
  }

  /** Whether the leg's audio comes to another leg in a room of both within so many ticks, each with one packet of it;
   * `before` says what goes before that packet. */
  template <typename Before>
  bool heard_within(int ticks, Before before) {
    FarEnd* other = open();
    if (other == nullptr || !plane->open_room(100)) return false;
    if (!plane->join(1, 100, false, 100, 100) || !plane->join(2, 100, false, 100, 100)) return false;
    bool is_heard = false;
    for (int i = 0; i < ticks && !is_heard; i++) {
      before();
      far->say(std::vector<uint8_t>(frame_units, 0x20));
      run(1, true);
      for (const auto& payload : other->heard())
        is_heard = is_heard || std::any_of(payload.begin(), payload.end(), [](uint8_t octet) { return octet != 0xff; });
    }
    return is_heard;
  }

  Counters counted() {
    Counters counters;
    (void)plane->counters(1, counters);
    return counters;
  }
};

}  // namespace

TEST("keys under an SSRC of their own beside the audio are told once each, and are no loss of it") {
  Gateway gateway;
  CHECK(gateway.begin());
  gateway.run(10);
  const uint32_t before = gateway.counted().received;
  for (uint8_t key = 1; key <= 5; key++) gateway.press(key, 1000u + key * 4000u);
  CHECK(gateway.told == "12345");
  CHECK(gateway.counted().received - before == 5 * 15 && gateway.counted().lost == 0);
}

TEST("keys under an SSRC of their own are told where the audio pauses for them, and the audio goes on") {
  Gateway gateway;
  CHECK(gateway.begin());
  gateway.run(10);
  const uint32_t before = gateway.counted().received;
  gateway.press(7, 90'000, true);
  gateway.run(5);
  gateway.press(8, 98'000, true);
  gateway.run(5);
  CHECK(gateway.told == "78");
  CHECK(gateway.counted().received - before == 10 && gateway.counted().lost == 0);
}

TEST("a key that a far end sends before any audio, under another SSRC, is told once") {
  Gateway gateway;
  CHECK(gateway.begin());
  for (uint16_t i = 1; i <= 4; i++) gateway.event(9, 500, static_cast<uint16_t>(i * 160));
  gateway.event(9, 500, 800, true);
  gateway.run(4);
  gateway.event(9, 500, 800, true);  // a late copy of its end, when the audio is heard
  gateway.run(30);
  CHECK(gateway.told == "9");
}

TEST("one stray packet of an event is no key, and two that are not in sequence are none") {
  Gateway gateway;
  CHECK(gateway.begin());
  gateway.run(10);
  gateway.event(3, 2000, 800, true);
  gateway.run(20);
  gateway.event_sequence += 7;
  gateway.event(3, 2000, 800, true);
  gateway.run(20);
  CHECK(gateway.told.empty());
}

TEST("a key under an SSRC of its own is told whole where the audio changes its source meanwhile") {
  Gateway gateway;
  CHECK(gateway.begin());
  gateway.run(10);
  gateway.press(1, 5000);
  for (uint16_t i = 1; i <= 10; i++) {
    if (i == 5) gateway.far->ssrc += 1;
    gateway.event(2, 20'000, static_cast<uint16_t>(i * 160));
    gateway.run();
  }
  CHECK(gateway.told == "1");
  gateway.event(2, 20'000, 1760, true);
  gateway.run(30);
  CHECK(gateway.told == "12");
}

TEST(
    "a key that goes down before any audio, under another SSRC, is told once and whole where the audio begins "
    "meanwhile") {
  Gateway gateway;
  CHECK(gateway.begin());
  for (uint16_t i = 1; i <= 6; i++) {
    gateway.event(6, 700, static_cast<uint16_t>(i * 480));
    gateway.run(3, i < 3);
  }
  CHECK(gateway.told.empty());
  for (int copy = 0; copy < 3; copy++) gateway.event(6, 700, 3360, true);
  gateway.run(30);
  CHECK(gateway.told == "6");
}

TEST("a key is told, and the audio goes on, where both come in turn under one new SSRC") {
  Gateway gateway;
  CHECK(gateway.begin());
  gateway.run(10);
  const uint32_t before = gateway.counted().received;
  gateway.event_ssrc = ++gateway.far->ssrc;
  for (uint16_t i = 1; i <= 10; i++) {
    gateway.event_sequence = gateway.far->sequence++;
    gateway.event(4, 30'000, static_cast<uint16_t>(i * 160), i > 7);
    gateway.run();
  }
  gateway.run(10);
  CHECK(gateway.told == "4");
  CHECK(gateway.counted().received - before >= 28);
}

TEST("the first audio is heard at its second packet, where a key under an SSRC of its own comes before each packet") {
  Gateway gateway;
  CHECK(gateway.begin());
  uint16_t units = 0;
  CHECK(gateway.heard_within(6, [&] { gateway.event(6, 700, units += 160); }));
  for (int i = 0; i < 10; i++) {
    gateway.event(6, 700, units += 160);
    gateway.run();
  }
  CHECK(gateway.told.empty());
  for (int copy = 0; copy < 3; copy++) {
    gateway.event(6, 700, units, true);
    gateway.run();
  }
  gateway.run(30);
  CHECK(gateway.told == "6");
}
