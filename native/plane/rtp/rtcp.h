// RTCP (RFC 3550 §6): sender and receiver reports with CNAME, and BYE. What is written is always one compound packet;
// what is read is checked as §A.2 asks, and of a compound only reports about us, the last SR's time and BYE are kept.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

/** One report block (§6.4.1). */
struct ReportBlock {
  uint32_t ssrc = 0;
  uint8_t fraction_lost = 0;
  int32_t lost = 0;
  uint32_t highest = 0;
  uint32_t jitter = 0;
  uint32_t last_sr = 0;
  uint32_t delay_since_sr = 0;
};

struct SenderInfo {
  uint64_t ntp = 0;  // 32.32 seconds since 1900
  uint32_t timestamp = 0;
  uint32_t packets = 0;
  uint32_t octets = 0;
};

/** What a received compound said that concerns us. */
struct RtcpHeard {
  bool sender_report = false;
  uint32_t sender_ssrc = 0;  // of the last report in it
  uint32_t middle_ntp = 0;
  bool about_us = false;
  ReportBlock block;
  bool bye = false;
};

constexpr size_t rtcp_max_bytes = 160;

/** Writes SR (or RR without `sender`), a block if there is one, SDES CNAME, and BYE if asked. Returns the length, at
 * most `rtcp_max_bytes`. */
size_t rtcp_write(uint8_t* out, uint32_t ssrc, const SenderInfo* sender, const ReportBlock* block, const char* cname,
                  bool bye);

/** Reads a compound. False when it is malformed; `heard` is then untouched. */
bool rtcp_parse(const uint8_t* bytes, size_t count, uint32_t our_ssrc, RtcpHeard& heard);

}  // namespace sidetone
