// The source (SSRC) of a leg's telephone events. It is that of the audio (RFC 4733 §2.1); some gateways give events one
// of their own beside it. Such a source is believed at its second packet in sequence, so that one stray packet is no
// key.
#pragma once
#include <cstdint>

#include "plane/rtp/rtp.h"

namespace sidetone {

class EventSource {
 public:
  enum class Verdict : uint8_t {
    known,    // of the source that events come from
    anew,     // the first event of a source that they come from now
    stranger  // of another source, which is not believed yet
  };

  /** Judges the packet of an event; `of_audio` where it is of the source whose audio the leg hears. */
  Verdict judge(const RtpPacket& packet, bool of_audio) {
    if (is(packet.ssrc)) return Verdict::known;
    const bool follows = waits_ && packet.ssrc == other_ && packet.sequence == next_;
    waits_ = !of_audio && !follows;
    if (waits_) {
      other_ = packet.ssrc;
      next_ = static_cast<uint16_t>(packet.sequence + 1);
      return Verdict::stranger;
    }
    known_ = true;
    ssrc_ = packet.ssrc;
    return Verdict::anew;
  }
  /** Whether events come from the source of this SSRC. */
  bool is(uint32_t ssrc) const { return known_ && ssrc_ == ssrc; }

 private:
  bool known_ = false;
  bool waits_ = false;  // for the second packet of `other_`
  uint16_t next_ = 0;
  uint32_t ssrc_ = 0;
  uint32_t other_ = 0;
};

}  // namespace sidetone
