#include "plane/rtp/rtp_source.h"

namespace sidetone {

RtpSource::Verdict RtpSource::judge(const RtpPacket& packet) {
  if (is(packet.ssrc)) {
    other_seen_ = false;
    return Verdict::known;
  }
  const bool confirmed = other_seen_ && packet.ssrc == other_ssrc_ && packet.sequence == other_next_;
  if (reception_.started() && !confirmed) {
    other_seen_ = true;
    other_ssrc_ = packet.ssrc;
    other_next_ = static_cast<uint16_t>(packet.sequence + 1);
    return Verdict::stranger;
  }
  received_before_ += reception_.received_in_all();
  lost_before_ += reception_.lost_in_all();
  reception_.start(packet.ssrc, packet.sequence);
  other_seen_ = false;
  return Verdict::anew;
}

}  // namespace sidetone
