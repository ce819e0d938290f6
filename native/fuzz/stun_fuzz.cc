// STUN: no bytes are read beyond the message, and what is read lies within it.
#include <cstdint>
#include <vector>

#include "plane/webrtc/stun.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> exact(data, data + size);
  // Half of what comes is given the shape and the checksum of a request, so that its attributes are looked at.
  if (size >= 36 && size % 8 == 4 && size <= stun_request_max_bytes) {
    exact[0] = 0;
    exact[1] = 1;
    exact[2] = static_cast<uint8_t>((size - stun_header_bytes) >> 8);
    exact[3] = static_cast<uint8_t>(size - stun_header_bytes);
    const uint8_t cookie[] = {0x21, 0x12, 0xa4, 0x42};
    for (size_t i = 0; i < 4; i++) exact[4 + i] = cookie[i];
    const uint8_t head[] = {0x80, 0x28, 0, 4};
    for (size_t i = 0; i < 4; i++) exact[size - 8 + i] = head[i];
    const uint32_t sum = stun_crc32(exact.data(), size - 8) ^ 0x5354554e;
    for (size_t i = 0; i < 4; i++) exact[size - 4 + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
  }
  StunRequest request;
  if (!stun_read_request(exact.data(), exact.size(), request)) return 0;
  if (request.integrity_at >= exact.size()) __builtin_trap();
  for (const char letter : request.username) (void)letter;
  if (stun_authentic(exact.data(), request, "a password that nobody knows")) __builtin_trap();
  return 0;
}
