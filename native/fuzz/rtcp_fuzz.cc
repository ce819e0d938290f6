// RTCP: any bytes are judged without reading past them; what we write is always read back.
#include <cstdint>
#include <cstring>

#include "plane/rtp/rtcp.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  RtcpHeard heard;
  (void)rtcp_parse(data, size, 0x01010101, heard);
  if (size < 32) return 0;
  ReportBlock block;
  std::memcpy(&block.lost, data, 4);
  block.ssrc = 7;
  block.fraction_lost = data[4];
  std::memcpy(&block.highest, data + 8, 4);
  char cname[64];
  for (int i = 0; i < 63; i++) cname[i] = static_cast<char>(data[i % size] | 1);
  cname[data[5] % 63] = 0;
  cname[63] = 0;
  uint8_t out[rtcp_max_bytes];
  SenderInfo sender;
  const size_t count = rtcp_write(out, 9, (data[6] & 1) != 0 ? &sender : nullptr, &block, cname, (data[7] & 1) != 0);
  if (count > sizeof out || !rtcp_parse(out, count, 7, heard) || !heard.about_us) __builtin_trap();
  return 0;
}
