// The one RTP source (SSRC) that a leg hears, and what all its sources sent together. A far end may change its SSRC
// within a call; the new one is believed at its second packet in sequence, so that one stray packet changes nothing.
#pragma once
#include <cstdint>

#include "plane/rtp/reception.h"
#include "plane/rtp/rtp.h"

namespace sidetone {

class RtpSource {
 public:
  enum class Verdict : uint8_t {
    known,    // of the source that is heard
    anew,     // the first packet of a source that is heard from now on
    stranger  // of another source, which is not believed yet
  };

  /** Judges the SSRC of a valid packet. */
  Verdict judge(const RtpPacket& packet);
  /** The statistics of the source that is heard now. */
  Reception& now() { return reception_; }
  const Reception& now() const { return reception_; }
  /** Whether any packet of it was taken. */
  bool heard() const { return reception_.started() && reception_.received() > 0; }
  /** Whether it is the source of this SSRC. */
  bool is(uint32_t ssrc) const { return reception_.started() && reception_.ssrc() == ssrc; }
  /** Packets of all sources so far. */
  uint32_t received() const { return received_before_ + reception_.received_in_all(); }
  /** Packets lost of all sources so far; negative when duplicates outweigh them. */
  int32_t lost() const { return lost_before_ + reception_.lost_in_all(); }

 private:
  Reception reception_;
  uint32_t other_ssrc_ = 0;
  uint16_t other_next_ = 0;
  bool other_seen_ = false;
  uint32_t received_before_ = 0;
  int32_t lost_before_ = 0;
};

}  // namespace sidetone
