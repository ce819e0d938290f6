// A relay is one direction of a bridge of two legs. The audio packets of one leg leave as those of the other, undecoded
// and as soon as they come (a translator, RFC 3550 §7.1). Their numbers go on where the other leg's own frames ended;
// what was lost or reordered on its way stays so. It carries G.711 and G.722 in packets of 20 ms.
//
//   off ─ arm ─► armed ─ first packet ─► on ─ end ─► ending ─ resume ─► off
//
// The last own frame fades out and the first packet fades in. The first own frame afterwards begins where the last
// packet ended. So nobody hears a click. G.722 has a memory, which a packet cannot be faded in without: its first
// packet leaves as it came, and the far end's decoder finds its way within some milliseconds.
#pragma once
#include <cstddef>
#include <cstdint>

#include "plane/audio/codec.h"
#include "plane/rtp/rtp.h"

namespace sidetone {

class Relay {
 public:
  struct Numbers {
    uint16_t sequence = 0;
    uint32_t timestamp = 0;
    bool first = false;
  };

  /** Whether packets are taken in place of own frames. */
  bool on() const { return state_ == State::armed || state_ == State::on; }
  bool ending() const { return state_ == State::ending; }
  /** Whether no packet has come for `patience_us`, so that the far end is given frames again. */
  bool silent(int64_t now_us, int64_t patience_us) const { return now_us - last_us_ > patience_us; }

  /** Takes packets after the next own frame, which is the last one. */
  void arm(int64_t now_us);
  /** Whether the next own frame is the last one. */
  bool fades_out() const { return fades_out_; }
  /** Fades the last own frame out. */
  void fade_out(Codec codec, int16_t* pcm);
  /** Takes no packet any more; own frames follow. */
  void end();
  /** Forgets everything, for another codec or when nothing is sent any more. */
  void reset() { *this = Relay(); }

  /** Numbers a packet; the first goes on with `sequence` and `timestamp`. False when it is not sent, by which the
   * relay may be ending. */
  bool number(const RtpPacket& packet, uint16_t sequence, uint32_t timestamp, int64_t now_us, Numbers& numbers);
  /** Writes the first packet, with a fade-in of 5 ms where it is G.711. */
  static void fade_in(Codec codec, const uint8_t* payload, uint8_t* out);
  /** The sequence number that the stream goes on with. */
  uint16_t next_sequence() const { return static_cast<uint16_t>(last_sequence_ + 1); }
  /** The timestamp that the stream goes on with. */
  uint32_t next_timestamp() const { return last_timestamp_ + static_cast<uint32_t>(frame_units); }
  /** Makes `pcm` the first own frame after it; returns the frames that were due since the last packet and not sent. */
  uint32_t resume(Codec codec, int16_t* pcm, int64_t now_us);

  static constexpr int64_t silent_us = 60'000;
  /** The same into a pipe to another node. Packets that come after frames of our own are numbered as if they were on
   * time, so that a burst after a stall stays in the jitter buffer of the mix there as delay, for seconds. */
  static constexpr int64_t pipe_patience_us = 240'000;
  /** Packets that leave at once, as they come after a stall of the network: two seconds. */
  static constexpr int64_t at_once_most = 100;
  /** One packet in so long leaves of those that go on: twice as many as a far end speaks. */
  static constexpr int64_t each_us = 10'000;

 private:
  enum class State : uint8_t { off, armed, on, ending };
  bool in_time(int64_t now_us);
  static constexpr size_t fade_samples(Codec codec) { return codec_samples(codec, frame_units) / 4; }  // 5 ms
  static constexpr uint16_t back_most = 100;
  static constexpr int32_t jump_most = 8000;  // a second
  static constexpr int32_t lost_most = 100;   // in that time, which has half as many packets

  State state_ = State::off;
  bool fades_out_ = false;
  bool spoken_ = false;  // a packet was sent: `last_octet_` is its last
  uint8_t last_octet_ = 0;
  uint32_t ssrc_ = 0;
  uint16_t offset_ = 0;  // of sequence numbers
  uint32_t timestamp_offset_ = 0;
  uint16_t taken_ = 0;  // packets since the first, to `back_most`
  uint16_t first_sequence_ = 0;
  uint16_t last_sequence_ = 0;
  uint32_t last_timestamp_ = 0;
  int64_t last_us_ = 0;
  int64_t paid_us_ = 0;  // when as many may leave at once again
};

}  // namespace sidetone
