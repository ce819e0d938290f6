#include "plane/rtp/rtcp_session.h"

#include <cstdio>

namespace sidetone {
namespace {

constexpr int32_t round_trip_most = 10 * 65536;    // in 1/65536 s; more is nonsense of the far end
constexpr uint64_t ntp_epoch_sec = 2'208'988'800;  // 1900 to 1970

uint64_t ntp_time(int64_t wall_us) {
  const uint64_t us = static_cast<uint64_t>(wall_us);
  return (us / 1'000'000 + ntp_epoch_sec) << 32 | ((us % 1'000'000) << 32) / 1'000'000;
}

}  // namespace

RtcpSession::RtcpSession(uint64_t name, uint64_t seed) : seed_(seed | 1) {
  std::snprintf(cname_, sizeof cname_, "%016llx", static_cast<unsigned long long>(name));
}

/** A generator (xorshift64*) that spreads reports and guards nothing. */
uint32_t RtcpSession::random() {
  seed_ ^= seed_ >> 12;
  seed_ ^= seed_ << 25;
  seed_ ^= seed_ >> 27;
  return static_cast<uint32_t>((seed_ * 0x2545f4914f6cdd1dULL) >> 32);
}

/** 0.5 to 1.5 times five seconds, over e - 3/2 (RFC 3550 §6.3.1). */
int64_t RtcpSession::interval_us() {
  return static_cast<int64_t>((0.5 + random() / 4294967296.0) * report_us / 1.21828);
}

bool RtcpSession::due(const Now& now) {
  if (now.us < due_us_) return false;
  due_us_ = now.us + interval_us();
  return true;
}

bool RtcpSession::take(const uint8_t* bytes, size_t count, uint32_t our_ssrc, const RtpSource& source,
                       const Now& arrived) {
  RtcpHeard heard;
  if (!rtcp_parse(bytes, count, our_ssrc, heard)) return false;
  const bool of_source = source.is(heard.sender_ssrc);
  if (heard.sender_report && of_source) {
    last_sr_ = heard.middle_ntp;
    last_sr_us_ = arrived.us;
  }
  if (!heard.about_us || heard.block.last_sr == 0) return of_source;
  // §6.4.1, in units of 1/65536 s
  const uint32_t middle_ntp = static_cast<uint32_t>(ntp_time(arrived.wall_us) >> 16);
  const int32_t units = static_cast<int32_t>(middle_ntp - heard.block.last_sr - heard.block.delay_since_sr);
  if (units >= 0 && units < round_trip_most) round_trip_us_ = static_cast<uint32_t>(int64_t{units} * 1'000'000 / 65536);
  return of_source;
}

size_t RtcpSession::write(uint8_t* out, uint32_t our_ssrc, SenderInfo sent, RtpSource& source, const Now& now,
                          bool bye) const {
  sent.ntp = ntp_time(now.wall_us);
  ReportBlock block;
  if (source.heard()) {
    Reception& reception = source.now();
    block.ssrc = reception.ssrc();
    block.fraction_lost = reception.fraction_lost();
    block.lost = reception.lost();
    block.highest = reception.extended_highest();
    block.jitter = reception.jitter_units();
    block.last_sr = last_sr_;
    block.delay_since_sr = last_sr_ == 0 ? 0 : static_cast<uint32_t>((now.us - last_sr_us_) * 65536 / 1'000'000);
  }
  return rtcp_write(out, our_ssrc, sent.packets > 0 ? &sent : nullptr, source.heard() ? &block : nullptr, cname_, bye);
}

}  // namespace sidetone
