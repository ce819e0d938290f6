// The reception statistics of one synchronization source (RFC 3550 §6.4.1, §A.1, §A.3, §A.8): validity of sequence
// numbers, loss and interarrival jitter.
#pragma once
#include <cstdint>
#include <optional>

namespace sidetone {

class Reception {
 public:
  enum class Verdict : uint8_t { accepted, duplicate_or_late, rejected };

  /** Starts over for a source, at its first packet. */
  void start(uint32_t ssrc, uint16_t sequence);
  /** Whether any source was started. */
  bool started() const { return started_; }
  uint32_t ssrc() const { return ssrc_; }

  /** Judges one packet's sequence number. `rejected` is a jump that a second packet has not confirmed. A number that
   * has been, with a timestamp that has not, is such a jump too: the source set its numbers back. The timestamp is left
   * out for telephone events, as theirs stands still. */
  Verdict sequence(uint16_t sequence, std::optional<uint32_t> timestamp = std::nullopt);
  /** What is missing before the next packet is no loss: while a call is on hold, the far end or a relay on the way may
   * number packets and not send them. */
  void excuse_gap() { gap_excused_ = true; }
  /** Folds one audio packet's arrival (in timestamp units) into the jitter estimate. Not for telephone events, whose
   * timestamp stands still. */
  void arrival(uint32_t timestamp, int64_t arrival_units);

  /** The timestamps are of another clock from now on, `to` units of which are `from` of the one before. */
  void change_clock(uint32_t from, uint32_t to);

  uint32_t received() const { return received_; }
  /** Packets of this source so far, those from before it restarted its numbering with them. */
  uint32_t received_in_all() const { return received_before_ + received_; }
  /** Packets lost so far, as `lost`, those from before a restart with them. */
  int32_t lost_in_all() const { return lost_before_ + lost(); }
  uint32_t extended_highest() const { return cycles_ + highest_; }
  /** Cumulative loss; negative when duplicates outweigh it. */
  int32_t lost() const;
  /** Interarrival jitter in timestamp units. */
  uint32_t jitter_units() const { return static_cast<uint32_t>(jitter_q4_ >> 4); }
  /** Fraction lost since the last call, in 1/256 (RFC 3550 §A.3). */
  uint8_t fraction_lost();

 private:
  static constexpr uint16_t dropout_max = 3000;
  static constexpr uint16_t misorder_max = 100;

  void restart(uint16_t sequence);
  bool is_new(std::optional<uint32_t> timestamp) const;
  Verdict earlier(uint16_t behind);

  bool started_ = false;
  uint32_t ssrc_ = 0;
  uint32_t base_ = 0;
  uint32_t cycles_ = 0;
  uint16_t highest_ = 0;
  std::optional<uint32_t> highest_timestamp_;  // the timestamp of the packet with the highest number
  uint32_t bad_next_ = 0x10000;
  uint32_t received_ = 0;
  uint32_t received_before_ = 0;  // it last restarted its numbering
  int32_t lost_before_ = 0;
  uint32_t expected_prior_ = 0;
  uint32_t received_prior_ = 0;
  uint64_t seen_ = 0;  // bit n: `highest_ - n` has come
  bool gap_excused_ = false;
  bool have_transit_ = false;
  int64_t transit_ = 0;
  int64_t jitter_q4_ = 0;
};

}  // namespace sidetone
