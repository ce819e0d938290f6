// Keys that come as a tone, as a telephone-event, or as both: each is told once.
#include "plane/leg/inband_keys.h"

#include <string>

#include "test/check.h"

using namespace sidetone;

namespace {

constexpr int64_t ms = 1000;

/** Presses as they are heard; the events are told at once, the tones when they are due. */
struct Keypad {
  InbandKeys keys;
  std::string told;

  void tone(char key, int64_t at_ms) { keys.tone({key, 80}, at_ms * ms); }
  void event(char key, int64_t at_ms) {
    keys.event(key, at_ms * ms);
    told += key;
  }
  void look(int64_t at_us, bool wait = true, bool active = false) {
    Digit digit;
    while (keys.due(at_us, wait, active, digit)) told += digit.key;
  }
};

}  // namespace

TEST("a tone and the event of its key are one digit, whichever ends first") {
  Keypad keypad;
  keypad.tone('5', 0);
  keypad.event('5', 100);
  keypad.event('7', 2000);
  keypad.tone('7', 2200);
  keypad.look(10'000 * ms);
  CHECK(keypad.told == "57");
}

TEST("the same key pressed twice, each time as event and tone, is two digits") {
  Keypad keypad;
  keypad.event('1', 0);
  keypad.event('1', 200);
  keypad.tone('1', 210);
  keypad.tone('1', 420);
  keypad.look(10'000 * ms);
  CHECK(keypad.told == "11");
  keypad.tone('1', 430);  // each event has taken the place of one tone
  keypad.look(10'000 * ms);
  CHECK(keypad.told == "111");
}

TEST("a tone of another key than the event's, or half a second after it, is a key of its own") {
  Keypad keypad;
  keypad.event('1', 0);
  keypad.tone('2', 100);
  keypad.look(1'000 * ms);
  CHECK(keypad.told == "12");
  keypad.tone('1', 500);
  keypad.look(1'000 * ms);
  CHECK(keypad.told == "12");
  keypad.event('3', 1000);
  keypad.keys.tone({'3', 80}, 1'500'001);
  keypad.look(3'000 * ms);
  CHECK(keypad.told == "1233");
}

TEST("a tone without an event is told after 300 ms, but not while an event is in progress") {
  Keypad keypad;
  keypad.tone('9', 1000);
  keypad.look(1'299'999);
  CHECK(keypad.told.empty());
  keypad.look(1'400'000, true, true);
  CHECK(keypad.told.empty());
  keypad.look(1'300'000);
  CHECK(keypad.told == "9");
  keypad.tone('8', 2000);
  keypad.look(2000 * ms, false);  // no events were agreed: nothing to wait for
  CHECK(keypad.told == "98");
}

TEST("tones are told in the order they were heard, and an event takes its own out of the middle") {
  Keypad keypad;
  for (const char key : std::string("12345678")) keypad.tone(key, 0);
  keypad.tone('9', 0);  // one more than any hand presses at once
  keypad.event('4', 10);
  keypad.look(1000 * ms);
  CHECK(keypad.told == "41235678");
  keypad.tone('4', 2000);
  keypad.look(3000 * ms);
  CHECK(keypad.told == "412356784");
}

TEST("of many events in a row the last eight are known, and the tones that follow them are none") {
  Keypad keypad;
  const std::string pressed = "0123456789";
  for (const char key : pressed) keypad.event(key, 0);
  for (const char key : pressed.substr(2)) keypad.tone(key, 100);
  keypad.look(1000 * ms);
  CHECK(keypad.told == pressed);
}
