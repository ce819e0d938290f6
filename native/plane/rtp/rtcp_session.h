// The RTCP of one leg (RFC 3550 §6): when its reports are due, what they say, and what the far end's reports tell.
#pragma once
#include <cstddef>
#include <cstdint>

#include "plane/now.h"
#include "plane/rtp/rtcp.h"
#include "plane/rtp/rtp_source.h"

namespace sidetone {

class RtcpSession {
 public:
  /** `name` becomes the CNAME, `seed` spreads the reports over time. Both are random numbers. */
  RtcpSession(uint64_t name, uint64_t seed);

  /** The stream begins. The first report comes early (§6.2). */
  void begin(const Now& now) { due_us_ = now.us + interval_us() / 2; }
  /** Whether a report is due; if so, the next one is due about five seconds later (§6.3.1). */
  bool due(const Now& now);
  /**
   * Takes a compound packet about our SSRC. `arrived` is when it came, which may be a tick before it is taken. Returns
   * whether it is well-formed and comes from the source that is heard.
   */
  bool take(const uint8_t* bytes, size_t count, uint32_t our_ssrc, const RtpSource& source, const Now& arrived);
  /**
   * Writes a report of what we sent (`sent`; nothing when its packets are 0) and heard; returns its length, at most
   * `rtcp_max_bytes`. The NTP time of `sent` is filled in. `bye` says that the leg ends.
   */
  size_t write(uint8_t* out, uint32_t our_ssrc, SenderInfo sent, RtpSource& source, const Now& now, bool bye) const;
  /** Another source begins: the sender report of the one before it says nothing about it. */
  void forget_sender() { last_sr_ = 0; }
  /** The round trip by the far end's last report, in microseconds; 0 when it has told none. */
  uint32_t round_trip_us() const { return round_trip_us_; }

 private:
  static constexpr int64_t report_us = 5'000'000;

  uint32_t random();
  int64_t interval_us();

  uint64_t seed_;
  char cname_[17] = {};
  int64_t due_us_ = 0;
  uint32_t last_sr_ = 0;    // the middle of the far end's last NTP time; 0: none
  int64_t last_sr_us_ = 0;  // and when it came
  uint32_t round_trip_us_ = 0;
};

}  // namespace sidetone
