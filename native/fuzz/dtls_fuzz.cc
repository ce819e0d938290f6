// DTLS: whatever records come, the endpoint stands it, connects with nobody, and sends no datagram beyond its bound.
#include <cstdint>
#include <vector>

#include "plane/webrtc/dtls.h"

using namespace sidetone;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<DtlsIdentity> identity = DtlsIdentity::create();
  const auto endpoint = DtlsEndpoint::create(identity, Fingerprint());
  if (!endpoint) return 0;
  const DtlsEndpoint::Out out = [](const uint8_t*, size_t count) {
    if (count > DtlsEndpoint::mtu) __builtin_trap();
  };
  for (size_t at = 0; at < size;) {
    const size_t count = data[at] < size - at - 1 ? data[at] : size - at - 1;
    std::vector<uint8_t> record(data + at + 1, data + at + 1 + count);
    at += 1 + count;
    if (count >= 13 && (record[0] & 1) != 0) {  // most get the head of a handshake record of the right length
      record[0] = 22;
      record[1] = 0xfe;
      record[2] = 0xfd;
      record[11] = static_cast<uint8_t>((count - 13) >> 8);
      record[12] = static_cast<uint8_t>(count - 13);
    }
    (void)DtlsEndpoint::shaped(record.data(), record.size());
    endpoint->take(record.data(), record.size(), out);
    endpoint->due(out);
  }
  if (endpoint->state() == DtlsEndpoint::State::connected) __builtin_trap();
  endpoint->close(out);
  return 0;
}
