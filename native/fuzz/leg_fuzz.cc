// A whole leg: datagrams from several sources on both ports between ticks, with someone listening, across
// re-negotiations.
#include <cstdint>
#include <cstring>
#include <vector>

#include "plane/leg/leg.h"

using namespace sidetone;

namespace {

struct Ear : Listener {
  void hear(const int16_t*, size_t count, uint32_t rate_hz, bool) override {
    if (count * 50 != rate_hz) __builtin_trap();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Ear ear;
  Leg leg(1, {0x11223344, 5, 6, 7, 8}, 1'000'000);
  Now now{1'000'000'000, 1'700'000'000'000'000};
  Notices notices;
  Datagram datagram;
  Negotiated agreed;
  agreed.event_payload_type = 101;
  agreed.own_event_payload_type = 96;
  agreed.own_payload_type = 111;
  size_t at = 0;
  int digits = 0;
  while (size - at >= 4 && notices.size() < 1000) {
    const uint8_t what = data[at];
    const size_t count = data[at + 1] < size - at - 2 ? data[at + 1] : size - at - 2;
    const uint8_t* bytes = data + at + 2;
    at += 2 + count;
    if ((what & 7) == 0) {
      agreed.codec = static_cast<Codec>(count % (codec_max + 1));
      agreed.payload_type = agreed.codec == Codec::pcmu   ? 0
                            : agreed.codec == Codec::pcma ? 8
                            : agreed.codec == Codec::g722 ? 9
                                                          : 111;
      agreed.ptime_ms = 10 + what % 51;
      agreed.send = (what & 64) != 0;
      agreed.receive = (what & 32) != 0;
      agreed.rtp.parse((what & 16) != 0 ? "127.0.0.1" : "0.0.0.0", 9);
      agreed.learn_from = AddressRange::parse_list((what & 128) != 0 ? "127.0.0.0/8" : "");
      agreed.held = count % 5 == 0;
      leg.negotiate(agreed, now);
      leg.listen((what & 8) != 0 ? &ear : nullptr);
      continue;
    }
    datagram.source.parse("127.0.0.1", static_cast<uint16_t>(9 + (what >> 6)));
    datagram.count = count;
    datagram.arrival_us = now.wall_us - what * 1000;
    const std::vector<uint8_t> exact(bytes, bytes + count);  // so that a byte read beyond it is seen
    datagram.bytes = exact.data();
    if ((what & 7) == 1) leg.receive_rtcp(datagram, now);
    else leg.receive_rtp(datagram, now, notices);
    if ((what & 7) < 5) {
      leg.tick(now, notices);
      now.us += 20'000;
      now.wall_us += 20'000;
    }
    if ((what & 7) == 5) leg.skip(what);
  }
  bool down = false;
  for (const Notice& notice : notices) {
    digits += notice.kind == NoticeKind::digit;
    // A press is followed by its digit, or by the word that there is none, before the next one.
    if (notice.kind == NoticeKind::key_down && down) __builtin_trap();
    if (notice.kind == NoticeKind::key_up && !down) __builtin_trap();
    if (notice.kind == NoticeKind::key_down) down = true;
    if (notice.kind == NoticeKind::key_up || notice.kind == NoticeKind::digit) down = false;
  }
  if (digits > static_cast<int>(size)) __builtin_trap();
  leg.bye(now);
  (void)leg.counters();
  return 0;
}
