// Whatever packets come, a stream that is relayed now and then never goes back: what follows has later numbers than all
// that was sent.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plane/leg/relay.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Relay relay;
  uint16_t sequence = 65'500;
  uint32_t timestamp = 4'294'960'000;
  int64_t now_us = 1'000'000'000;
  uint16_t theirs = 0;
  uint32_t their_time = 0;
  for (size_t at = 0; at + 4 <= size; at += 4) {
    const uint8_t* step = data + at;
    const std::vector<uint8_t> payload(frame_units, step[3]);
    int16_t pcm[frame_units];
    for (int16_t& sample : pcm) sample = static_cast<int16_t>(step[3] << 8);
    now_us += step[0] >> 3 << 10;
    const uint16_t sequence_before = sequence;
    const uint32_t timestamp_before = timestamp;
    switch (step[0] & 7) {
      case 0:
        if (!relay.on() && !relay.ending()) relay.arm(now_us);
        break;
      case 1: relay.end(); break;
      case 2:  // a tick: a frame of its own, unless packets leave in place of it
        if (relay.on() && !relay.fades_out()) break;
        if (relay.fades_out()) relay.fade_out(Codec::pcma, pcm);
        else if (relay.ending())
          timestamp += relay.resume(Codec::pcmu, pcm, now_us) * static_cast<uint32_t>(frame_units);
        sequence++;
        timestamp += static_cast<uint32_t>(frame_units);
        break;
      default: {
        theirs = static_cast<uint16_t>(theirs + 1 + (step[1] == 0 ? step[2] - 128 : 0));
        their_time += (step[1] & 0xf0) == 0 ? static_cast<uint32_t>(step[2] - 128) * 160 : 160;
        RtpPacket packet;
        packet.sequence = theirs;
        packet.timestamp = their_time;
        packet.ssrc = step[1] == 255 ? step[2] : 7;
        packet.payload = payload.data();
        packet.payload_bytes = payload.size();
        Relay::Numbers numbers;
        if (!relay.number(packet, sequence, timestamp, now_us, numbers)) break;
        uint8_t out[frame_units];
        if (numbers.first) Relay::fade_in(Codec::pcma, packet.payload, out);
        sequence = relay.next_sequence();
        timestamp = relay.next_timestamp();
      }
    }
    if (static_cast<int16_t>(sequence - sequence_before) < 0 ||
        static_cast<int32_t>(timestamp - timestamp_before) < -8000)
      __builtin_trap();
  }
  return 0;
}
