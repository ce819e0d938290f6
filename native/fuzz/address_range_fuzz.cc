// Ranges of addresses and the latch that learns from them: whatever the text, only addresses inside a range that was
// read are ever learnt, and the address in SDP is always taken.
#include <cstdint>
#include <cstdio>
#include <string>

#include "plane/leg/latch.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t length = data[0] < size - 1 ? data[0] : size - 1;
  const std::string text(reinterpret_cast<const char*>(data) + 1, length);
  const std::vector<AddressRange> ranges = AddressRange::parse_list(text);
  if (ranges.size() > AddressRange::list_max) __builtin_trap();
  Address sdp;
  (void)sdp.parse("192.0.2.1", 4000);
  Latch latch;
  bool held = false;
  latch.expect(sdp, ranges, held);
  int64_t now_us = 1'000'000;
  for (size_t at = 1 + length; at + 3 <= size; at += 3) {
    char host[24];
    std::snprintf(host, sizeof host, "192.0.%d.%d", data[at] % 4, data[at] / 64);
    Address source;
    (void)source.parse(host, static_cast<uint16_t>(4000 + data[at + 1] % 4));
    if (data[at + 2] % 16 == 0) latch.expect(sdp, ranges, held = !held);
    const Address before = latch.remote();
    const bool taken = latch.accept(source, data[at + 1], data[at + 2], now_us);
    bool inside = source == sdp;
    for (const AddressRange& range : ranges) inside = inside || range.contains(source);
    if (taken && !inside) __builtin_trap();
    if (source == sdp && (!taken || latch.remote() != sdp)) __builtin_trap();
    if (held && source != sdp && latch.remote() != before) __builtin_trap();
    now_us += data[at + 1] * 10'000;
  }
  return 0;
}
