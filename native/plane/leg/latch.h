// Symmetric RTP with bounded latching (RFC 4961, contract §2): audio goes to the address in SDP, or to the one other source that sends during
// the first packets of a negotiation. After that the address is fixed until the next negotiation, so a stranger cannot take a call over.
#pragma once
#include <cstdint>

#include "plane/io/address.h"

namespace sidetone {

class Latch {
 public:
  /** A new offer or answer: expects `sdp`, and opens the window. */
  void expect(const Address& sdp) {
    if (sdp != sdp_) {
      sdp_ = sdp;
      remote_ = sdp;  // the same address again (hold, session refresh) keeps what was latched, and only reopens the window
    }
    candidate_ = Address();
    candidate_count_ = 0;
    packets_ = 0;
    confirmed_ = 0;
    fixed_ = false;
  }

  /** Whether a valid RTP packet from `source` belongs to the leg. */
  bool accept(const Address& source, uint32_t ssrc, uint16_t sequence) {
    if (source == remote_) {
      if (!fixed_ && ++confirmed_ >= confirm_packets) fixed_ = true;
      return true;
    }
    if (fixed_ || packets_ >= window_packets) return false;
    packets_++;
    const bool next = source == candidate_ && ssrc == candidate_ssrc_ && static_cast<uint16_t>(sequence - candidate_sequence_) == 1;
    candidate_count_ = next ? candidate_count_ + 1 : 1;
    candidate_ = source;
    candidate_ssrc_ = ssrc;
    candidate_sequence_ = sequence;
    if (candidate_count_ < latch_packets) return false;
    remote_ = source;
    fixed_ = true;
    return true;
  }

  /** Where to send. */
  const Address& remote() const { return remote_; }

  /** Packets from strangers looked at after a negotiation; half a second of audio. */
  static constexpr int window_packets = 25;
  /** Packets in sequence from one stranger before it is taken (RFC 3550 MIN_SEQUENTIAL). */
  static constexpr int latch_packets = 2;
  /** Packets from the SDP's own address that close the window. */
  static constexpr int confirm_packets = 2;

 private:
  Address sdp_;
  Address remote_;
  Address candidate_;
  uint32_t candidate_ssrc_ = 0;
  uint16_t candidate_sequence_ = 0;
  int candidate_count_ = 0;
  int packets_ = 0;
  int confirmed_ = 0;
  bool fixed_ = false;
};

}  // namespace sidetone
