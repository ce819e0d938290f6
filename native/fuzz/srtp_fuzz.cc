// SRTP and SRTCP: nothing that is not authentic is ever opened, whatever bytes come, and a leg stands it.
#include <cstdint>
#include <cstring>
#include <vector>

#include "plane/srtp/leg_cipher.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  SrtpKeys keys;
  keys.suite = static_cast<SrtpSuite>(1 + data[0] % srtp_suite_max);
  LegCipher cipher;
  cipher.agree(keys);
  alignas(8) uint8_t clear[Datagram::bytes_max];
  Datagram datagram;
  size_t at = 1;
  uint32_t dropped = 0;
  while (at < size) {
    const size_t count = data[at] < size - at - 1 ? data[at] : size - at - 1;
    const std::vector<uint8_t> exact(data + at + 1, data + at + 1 + count);
    datagram.bytes = exact.data();
    datagram.count = count;
    at += 1 + count;
    size_t opened = 0;
    const bool rtcp = count > 1 && exact[1] >= 192 && exact[1] <= 223;
    if (rtcp ? cipher.open_rtcp(datagram, clear, opened, 1) : cipher.open(datagram, clear, opened, 1)) __builtin_trap();
    dropped++;
  }
  const uint32_t counted = cipher.forged() + cipher.replayed();
  if (counted != dropped && counted != 0) __builtin_trap();  // 0: built without libsrtp2
  return 0;
}
