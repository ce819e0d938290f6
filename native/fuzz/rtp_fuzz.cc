// RTP: what is accepted lies within the datagram, and survives the sequence judge.
#include <cstdint>

#include "plane/rtp/reception.h"
#include "plane/rtp/rtp.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  RtpPacket packet;
  if (!rtp_parse(data, size, packet)) return 0;
  if (packet.payload < data || packet.payload + packet.payload_bytes > data + size) __builtin_trap();
  Reception reception;
  reception.start(packet.ssrc, packet.sequence);
  for (size_t i = 0; i + 2 <= packet.payload_bytes; i += 2) {
    const uint16_t sequence = static_cast<uint16_t>(packet.payload[i] << 8 | packet.payload[i + 1]);
    const uint32_t timestamp = packet.payload[i] * 16777259u;
    (void)reception.sequence(sequence, i % 3 == 0 ? std::nullopt : std::optional(timestamp));
    reception.arrival(timestamp, static_cast<int64_t>(i) * 160);
  }
  (void)reception.fraction_lost();
  (void)reception.lost();
  return 0;
}
