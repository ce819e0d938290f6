// The packets of a codec that has no octet for each unit of 125 us (Opus, L16) while they wait in the jitter buffer.
// The buffer keeps an octet for each unit, so such a packet stands in it as the number of a slot, once for each unit
// that it lasts; its bytes lie here. Slots and bytes are reused in turn: half a second of Opus packets of 2.5 ms needs
// 205 slots, half a second of L16 at 24 kHz 24,000 bytes.
//
//   jitter buffer   ... 7 7 7 7 7 7 7 7 | 8 8 8 8 8 8 8 8 | (lost) | 10 10 ...
//   slots               7: first unit, units, bytes ──► decoded when its first unit is asked for
//
// The timestamps of these codecs count samples (RFC 7587 §4.1, RFC 3551 §4.1), the buffer's 8 kHz.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "plane/audio/codec.h"
#include "plane/audio/opus.h"
#include "plane/leg/jitter_buffer.h"

namespace sidetone {

class CodedPackets {
 public:
  /** `codec` is one of those that `has_octets` denies. */
  explicit CodedPackets(Codec codec) : scale_(codec_clock_scale(codec)) {
    if (codec == Codec::opus) opus_ = OpusVoiceDecoder::create();
    else is_l16_ = true;
  }

  /** Stores a packet, and its slots in the jitter buffer. False where it is none, came too late, or is there already.
   */
  bool insert(JitterBuffer& jitter, uint32_t timestamp, const uint8_t* packet, size_t count, int64_t arrival_us) {
    const size_t units = units_of(packet, count);
    if (units == 0 || count > packet_bytes_max) return false;
    if (!started_) {
      started_ = true;
      last_ = timestamp;
      clock_ = 0;
    }
    clock_ += static_cast<int32_t>(timestamp - last_);
    last_ = timestamp;
    const auto first = static_cast<uint32_t>(clock_ / static_cast<int64_t>(scale_));
    Slot& slot = slots_[next_slot_];
    slot.first = first;
    slot.units = static_cast<uint32_t>(units);
    slot.count = static_cast<uint32_t>(count);
    slot.at = written_;
    for (size_t i = 0; i < count; i++) bytes_[(written_ + i) % bytes_max] = packet[i];
    written_ += count;
    uint8_t numbers[units_max];
    std::memset(numbers, next_slot_, units);
    next_slot_ = static_cast<uint8_t>(next_slot_ + 1);
    return jitter.insert(first, numbers, units, arrival_us);
  }

  /** Another source follows, whose sound goes on from that of the one before. */
  void begin_anew() {
    started_ = false;
    opened_ = no_slot;
    recovered_units_ = 0;
  }

  /** Decodes the `count` units that begin at unit `first` and stand in `numbers`. False when a packet of them is gone.
   */
  bool decode(uint32_t first, const uint8_t* numbers, int16_t* out, size_t count) {
    for (size_t at = 0; at < count;) {
      const uint8_t number = numbers[at];
      const Slot& slot = slots_[number];
      const uint32_t offset = first + static_cast<uint32_t>(at) - slot.first;
      if (offset >= slot.units || written_ - slot.at > bytes_max || !open(number, slot)) return false;
      const size_t units = std::min<size_t>(slot.units - offset, count - at);
      std::memcpy(out + at * scale_, pcm_ + offset * scale_, units * scale_ * sizeof(int16_t));
      at += units;
    }
    return true;
  }

  /** Makes the `count` units of Opus before the next one in the jitter buffer out of the copy in the packet that
   * follows (in-band FEC). False where none does, or its copy begins later. */
  bool recover(const JitterBuffer& jitter, size_t count, int16_t* out) {
    const uint32_t first = jitter.next() - static_cast<uint32_t>(count);
    if (first - recovered_ >= recovered_units_ && !recover_before_next(jitter, count)) return false;
    std::memcpy(out, pcm_ + (first - recovered_) * scale_, count * scale_ * sizeof(int16_t));
    return true;
  }

  /** Whether the packet that was decoded last ended in noise: its far end may say nothing for a while (DTX). */
  bool ended_in_noise() const { return ended_in_noise_; }

  /** Makes `count` units of Opus up. */
  void conceal(size_t count, int16_t* out) {
    int16_t made[opus_frame_samples] = {};
    opened_ = no_slot;
    if (opus_) opus_->conceal(made, whole(count) * scale_);
    std::memcpy(out, made, count * scale_ * sizeof(int16_t));
  }

  /** A frame of Opus has 1,275 at most, and a packet may have several frames (RFC 6716 §3.2). */
  static constexpr size_t packet_bytes_max = 1500;
  static constexpr size_t bytes_max = 32 * 1024;

 private:
  struct Slot {
    uint32_t first = 0;
    uint32_t units = 0;
    uint32_t count = 0;
    uint64_t at = 0;
  };
  static constexpr size_t units_max = opus_packet_samples_max / codec_clock_scale(Codec::opus);
  /** The longest frame of Opus, of which the packet after it has a copy: 60 ms. */
  static constexpr size_t copied_max = units_max / 2;
  static constexpr int32_t recovered_fade = opus_samples_min;
  static constexpr int no_slot = -1;
  static_assert(packet_bytes_max / l16_sample_bytes <= units_max,
                "the longest packet of L16 has a number for each unit");

  /** The units that a packet lasts; 0 for what is no packet. */
  size_t units_of(const uint8_t* packet, size_t count) const {
    if (!is_l16_) return opus_samples(packet, count) / scale_;
    const size_t unit_bytes = scale_ * l16_sample_bytes;
    return count % unit_bytes == 0 ? count / unit_bytes : 0;
  }

  /** The bytes of a slot's packet; 0 when they were written over. */
  size_t copy(const Slot& slot, uint8_t* packet) const {
    if (slot.count == 0 || written_ - slot.at > bytes_max) return 0;
    for (size_t i = 0; i < slot.count; i++) packet[i] = bytes_[(slot.at + i) % bytes_max];
    return slot.count;
  }

  /** So many units, and what is missing to whole 2.5 ms, which is what the library makes up. */
  static size_t whole(size_t units) {
    constexpr size_t least = opus_samples_min / codec_clock_scale(Codec::opus);
    return (units + least - 1) / least * least;
  }

  /** Makes what is lost before the packet that follows at the next unit or after more of what is lost, `count` units
   * before the next one with it. */
  bool recover_before_next(const JitterBuffer& jitter, size_t count) {
    const size_t more = jitter.run(copied_max, false);
    if (!opus_ || more == copied_max) return false;
    const Slot& slot = slots_[jitter.octet(more)];
    if (slot.first != jitter.next() + more) return false;
    uint8_t packet[packet_bytes_max];
    const size_t bytes = copy(slot, packet);
    const size_t copied = bytes == 0 ? 0 : opus_copied_samples(packet, bytes) / scale_;
    if (copied <= more) return false;
    const size_t lost = count + more;
    opened_ = no_slot;
    recovered_units_ = static_cast<uint32_t>(std::max(copied, whole(lost)));
    recovered_ = slot.first - recovered_units_;
    int16_t before[recovered_fade];
    const bool is_begun = copied > lost;  // what its copy begins with was made up already
    if (is_begun) opus_->conceal(before, recovered_fade);
    opus_->recover(packet, bytes, pcm_, recovered_units_ * scale_);
    if (is_begun) lead_over(before, pcm_ + (recovered_units_ - lost) * scale_);
    return true;
  }

  /** Cross-fades from sound that is made up to that of a copy, which may begin anywhere in it. */
  static void lead_over(const int16_t* before, int16_t* copy) {
    for (int32_t i = 0; i < recovered_fade; i++)
      copy[i] = static_cast<int16_t>(before[i] + (copy[i] - before[i]) * i / recovered_fade);
  }

  /** Decodes the packet of a slot, unless it was the last one that was. */
  bool open(uint8_t number, const Slot& slot) {
    if (opened_ == number && opened_at_ == slot.at) return true;
    uint8_t packet[packet_bytes_max];
    const size_t count = copy(slot, packet);
    if (count == 0) return false;
    recovered_units_ = 0;
    if (is_l16_) l16_decode(packet, pcm_, count / l16_sample_bytes);
    else if (!opus_ || opus_->decode(packet, count, pcm_) < slot.units * scale_) return false;
    ended_in_noise_ = !is_l16_ && opus_ends_in_noise(packet, count);
    opened_ = number;
    opened_at_ = slot.at;
    return true;
  }

  size_t scale_;  // samples, and counts of the RTP clock, in a unit of 125 us
  bool is_l16_ = false;
  std::unique_ptr<OpusVoiceDecoder> opus_;
  bool started_ = false;
  uint32_t last_ = 0;  // the timestamp that came last
  int64_t clock_ = 0;  // and what it is, counted from the first one
  uint8_t next_slot_ = 0;
  uint64_t written_ = 0;
  int opened_ = no_slot;
  uint64_t opened_at_ = 0;
  bool ended_in_noise_ = false;
  uint32_t recovered_ = 0;  // the first unit of what `pcm_` holds in place of a packet
  uint32_t recovered_units_ = 0;
  Slot slots_[256];
  int16_t pcm_[opus_packet_samples_max];
  uint8_t bytes_[bytes_max];
};

}  // namespace sidetone
