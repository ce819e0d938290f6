// The one RTP source (SSRC) that a leg hears, and what all its sources sent together. A far end may change its SSRC
// within a call; the new one is believed at its second packet in sequence, so that one stray packet changes nothing.
#pragma once
#include <array>
#include <cstddef>
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

  /** Judges the SSRC of a valid packet. One of the source in use that is `heard` ends the count of the others; an event
   * of a source that sent nothing else does not, as the audio may come in turn with it. */
  Verdict judge(const RtpPacket& packet, bool heard = true);
  /** Counts a valid packet of another source that is judged elsewhere: what comes in sequence after it is believed. */
  void note(const RtpPacket& packet) { (void)confirmed(packet); }
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
  /** A source that was heard once since the one in use. */
  struct Other {
    bool seen = false;
    uint32_t ssrc = 0;
    uint16_t next = 0;
  };
  /** So many may take turns, as two streams on one port do, and each is still known by its second packet. */
  static constexpr size_t others_most = 4;

  bool confirmed(const RtpPacket& packet);

  void forget_others();

  Reception reception_;
  uint32_t received_before_ = 0;
  int32_t lost_before_ = 0;
  bool others_heard_ = false;  // spares each packet of the source in use a look at the others
  uint8_t next_other_ = 0;     // that is forgotten for a new one
  std::array<Other, others_most> others_;
};

}  // namespace sidetone
