#include "plane/rtp/rtp_source.h"

#include <algorithm>

namespace sidetone {

RtpSource::Verdict RtpSource::judge(const RtpPacket& packet, bool heard) {
  if (is(packet.ssrc)) {
    if (heard && others_heard_) forget_others();
    return Verdict::known;
  }
  if (reception_.started() && !confirmed(packet)) return Verdict::stranger;
  received_before_ += reception_.received_in_all();
  lost_before_ += reception_.lost_in_all();
  reception_.start(packet.ssrc, packet.sequence);
  forget_others();
  return Verdict::anew;
}

void RtpSource::forget_others() {
  for (Other& other : others_) other.seen = false;
  others_heard_ = false;
}

/** Whether a packet follows the one before it of its source; if not, the next one may follow it. */
bool RtpSource::confirmed(const RtpPacket& packet) {
  const auto known = std::find_if(others_.begin(), others_.end(),
                                  [&](const Other& other) { return other.seen && other.ssrc == packet.ssrc; });
  if (known != others_.end() && packet.sequence == known->next) return true;
  Other& other = known != others_.end() ? *known : others_[next_other_++ % others_most];
  other = {true, packet.ssrc, static_cast<uint16_t>(packet.sequence + 1)};
  others_heard_ = true;
  return false;
}

}  // namespace sidetone
