// A stream leg: bytes of any size at any time, dropped or played out; each tick gives one frame, and what the inbox
// says it has passed on is true.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "plane/stream/stream_leg.h"

using namespace sidetone;

namespace {

struct Ear : Listener {
  void hear(const int16_t*, size_t count, uint32_t rate_hz, bool) override {
    if (count * 50 != rate_hz) __builtin_trap();
  }
};

StreamFormat format(uint8_t what) {
  StreamFormat format;
  format.encoding = (what & 1) != 0 ? StreamEncoding::mulaw : StreamEncoding::pcm;
  format.rate_hz = rate_table_hz[what >> 1 & 3];
  return format;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const StreamFormat to = format(data[0]);
  const StreamFormat from = format(data[1]);
  const auto inbox = std::make_shared<StreamInbox>();
  StreamLeg leg(1, inbox, to, from);
  StreamFrames frames;
  Notices notices;
  Ear ear;
  Now now{1'000'000'000, 1'700'000'000'000'000};
  leg.deliver(&frames);
  constexpr size_t most = 20'000;
  uint32_t written = 0;
  const auto tick = [&] {
    frames.clear();
    leg.tick(now, notices);
    now.us += 20'000;
    uint32_t header[3];
    if (frames.size() < sizeof header) __builtin_trap();
    std::memcpy(header, frames.data(), sizeof header);
    const size_t length = from.rate_hz / 50 * from.unit();
    if (header[0] != 1 || header[2] != length || frames.size() != sizeof header + (length + 3) / 4 * 4)
      __builtin_trap();
    if (header[1] != inbox->passed() || written - header[1] != inbox->queued()) __builtin_trap();
  };
  for (size_t at = 2; at < size && notices.size() < 1000; at++) {
    const uint8_t what = data[at];
    if (what < 128) {
      const size_t count = what < 64 ? what : static_cast<size_t>(what - 60) * 200;
      std::vector<uint8_t> bytes(count, static_cast<uint8_t>(at));
      const bool room = inbox->queued() < most;
      if (inbox->write(bytes.data(), count, most) != room) __builtin_trap();
      if (room) written += static_cast<uint32_t>(count);
    } else if (what < 240) {
      for (int i = 0; i <= what % 8; i++) tick();
    } else if (what < 244) {
      inbox->clear();
    } else if (what < 248) {
      leg.listen((what & 1) != 0 ? &ear : nullptr);
    } else if (what < 252) {
      leg.detect_tones((what & 1) != 0);
    } else {
      leg.skip(what);
    }
  }
  // Everything is played out at real time, but for a piece of a sample.
  for (size_t i = 0; i <= (most + 14'000) / (to.rate_hz / 50 * to.unit()) + 2; i++) tick();
  if (inbox->queued() >= to.unit()) __builtin_trap();
  for (const Notice& notice : notices) {
    if (notice.kind == NoticeKind::stream_played && notice.leg != 1) __builtin_trap();
  }
  return 0;
}
