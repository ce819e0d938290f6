// Telephone events: any series of packets gives at most one digit a packet, and every digit is a key.
#include <cstdint>
#include <cstring>

#include "plane/rtp/telephone_event.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TelephoneEvent event;
  int64_t now = 0;
  Digit digit;
  for (size_t at = 0; at + 8 <= size; at += 8) {
    uint32_t timestamp;
    std::memcpy(&timestamp, data + at, 4);
    timestamp &= 0xf00fffff;
    now += data[at + 7] * 1000;
    const bool told = event.expire(now, digit) ||
                      event.receive(data + at + 4, data[at] % 5, timestamp, (data[at + 3] & 1) != 0, now, digit);
    if (told && std::strchr("0123456789*#ABCD", digit.key) == nullptr) __builtin_trap();
    if (told && digit.key == 0) __builtin_trap();
    if (event.active() != (event.down() != 0)) __builtin_trap();
  }
  return 0;
}
