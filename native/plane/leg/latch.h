// Symmetric RTP with strict latching (RFC 4961): who may be the far end of a leg, and where its audio goes.
//
//  * The address in SDP always takes the leg back, with its first packet.
//  * Another source is learnt at its second packet in a row, and only
//      - from the peer's signalling address or its trunk's ranges,
//      - until the far end in use has sent anything, or after 2 s of that far end's silence (a NAT that moved the
//      call),
//      - while the call is not held.
//  * The address that SDP named before, if the far end was heard from it, is heard for 2 s more, until the new one
//    sends: what the far end said before it moved is still on its way. Nothing is sent there.
//  * Packets in a row are counted for each source and SSRC by itself, so strays neither reset that count nor use
//    anything up.
//
// A stranger outside the ranges is never heard and never sent to: RTP bleed, CVE-2025-53399, AST-2017-005.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "plane/io/address.h"
#include "plane/io/address_range.h"

namespace sidetone {

class Latch {
 public:
  /**
   * Applies an offer or answer. `sdp` is where it asks for RTP, `learn_from` the hosts another source may be learnt
   * from, `held` whether the call is on hold. The same address again (hold, session refresh) keeps what was learnt;
   * another address begins anew.
   */
  void expect(const Address& sdp, std::vector<AddressRange> learn_from, bool held) {
    learn_from_ = std::move(learn_from);
    held_ = held;
    const Address plain = sdp.plain();
    if (plain == sdp_) return;
    left_ = heard_ && remote_ == sdp_ ? sdp_ : Address();
    sdp_ = plain;
    remote_ = plain;
    heard_ = false;
    candidates_.reset();
  }

  /**
   * Whether a valid RTP packet belongs to the leg. `now_us` is monotonic, in microseconds. A packet of the address in
   * SDP, or the second of a source that may be learnt, changes where the leg sends to.
   */
  bool accept(const Address& from, uint32_t ssrc, uint16_t sequence, int64_t now_us) {
    const Address source = from.plain();
    if (source == left_ && !heard_ && now_us - heard_us_ < silence_us) return true;
    if (source == sdp_) remote_ = sdp_;
    else if (source != remote_ && !learn(source, ssrc, sequence, now_us)) return false;
    heard_ = true;
    heard_us_ = now_us;
    return true;
  }

  /** Whether `accept` could be true of a packet from here, so that looking into it is worth the work. */
  bool may_come_from(const Address& from) const {
    const Address source = from.plain();
    return source == sdp_ || source == remote_ || source == left_ || (!held_ && may_learn_from(source));
  }

  /** The address that audio is sent to. */
  const Address& remote() const { return remote_; }

  /** Packets in a row of one source before it is learnt (RFC 3550 MIN_SEQUENTIAL). */
  static constexpr int learn_packets = 2;
  /** How long the far end in use must be silent before another source may take its place. */
  static constexpr int64_t silence_us = 2'000'000;
  /** Sources whose packets are counted at a time; beyond it the one that was silent longest is forgotten. */
  static constexpr size_t candidates_max = 16;

 private:
  struct Candidate {
    Address source;
    uint32_t ssrc = 0;
    uint16_t next = 0;
    int in_a_row = 0;
    uint64_t heard = 0;  // `Candidates::packets` at its last packet
  };
  struct Candidates {
    std::vector<Candidate> sources;
    uint64_t packets = 0;
  };

  bool learn(const Address& source, uint32_t ssrc, uint16_t sequence, int64_t now_us) {
    if (held_ || !may_learn_from(source)) return false;
    Candidate& candidate = this->candidate(source, ssrc);
    const bool follows = candidate.in_a_row > 0 && candidate.next == sequence;
    candidate.in_a_row = follows ? candidate.in_a_row + 1 : 1;
    candidate.next = static_cast<uint16_t>(sequence + 1);
    candidate.heard = ++candidates_->packets;
    if (candidate.in_a_row < learn_packets || (heard_ && now_us - heard_us_ < silence_us)) return false;
    remote_ = source;
    candidates_.reset();
    return true;
  }

  bool may_learn_from(const Address& source) const {
    for (const AddressRange& range : learn_from_) {
      if (range.contains(source)) return true;
    }
    return false;
  }

  /** The count of one source: its own, a new one, or that of the source that was silent longest. Packets of two SSRCs
   * may come in turn, as events do that have one beside the audio. */
  Candidate& candidate(const Address& source, uint32_t ssrc) {
    if (!candidates_) candidates_ = std::make_unique<Candidates>();
    std::vector<Candidate>& sources = candidates_->sources;
    size_t oldest = 0;
    for (size_t i = 0; i < sources.size(); i++) {
      if (sources[i].source == source && sources[i].ssrc == ssrc) return sources[i];
      if (sources[i].heard < sources[oldest].heard) oldest = i;
    }
    if (sources.size() < candidates_max) {
      oldest = sources.size();
      sources.emplace_back();
    }
    sources[oldest] = Candidate();
    sources[oldest].source = source;
    sources[oldest].ssrc = ssrc;
    return sources[oldest];
  }

  Address sdp_;
  Address remote_;
  Address left_;          // that SDP named before, and that sent; none while the far end was learnt instead
  int64_t heard_us_ = 0;  // when `remote_`, or `left_` before it, last sent
  bool heard_ = false;    // whether it ever did
  bool held_ = false;
  std::vector<AddressRange> learn_from_;
  std::unique_ptr<Candidates> candidates_;  // none while all is well: it is no part of what a tick touches
};

}  // namespace sidetone
