// Telephone events under an SSRC of their own, beside the audio of another.
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
