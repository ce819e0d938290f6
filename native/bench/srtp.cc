// µs a packet of 160 octets that SRTP costs, in each suite and direction, and how often memory is taken for it: by our
// own code never, by the library as it is built. Medians of short interleaved rounds.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "plane/rtp/rtp.h"
#include "plane/srtp/srtp_session.h"

using namespace sidetone;

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
}

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

// The library's own allocations are counted too.
extern "C" void* malloc(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
extern "C" void* calloc(size_t count, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}

namespace {

constexpr int rounds = 41;
constexpr int packets = 500;
constexpr size_t payload = 160;

struct Packet {
  alignas(8) uint8_t bytes[rtp_header_bytes + payload + srtp_overhead_bytes];
  size_t count;
};

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  const char* names[] = {"AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32", "AEAD_AES_128_GCM", "AEAD_AES_256_GCM"};
  const uint8_t key[srtp_key_max_bytes] = {1, 2, 3};
  std::vector<Packet> batch(packets);
  if (!srtp_supports(SrtpSuite::aes_cm_128_hmac_sha1_80)) {
    std::printf("built without libsrtp2\n");
    return 0;
  }
  std::printf("%-26s%14s%14s%22s\n", "us a packet", "protect", "unprotect", "allocations, both");
  for (uint8_t suite = 1; suite <= srtp_suite_max; suite++) {
    auto out = SrtpSession::create(static_cast<SrtpSuite>(suite), key, SrtpSession::Direction::send);
    auto in = SrtpSession::create(static_cast<SrtpSuite>(suite), key, SrtpSession::Direction::receive);
    std::vector<double> protect, unprotect;
    uint16_t sequence = 0;
    uint64_t taken = 0;
    for (int round = 0; round < rounds; round++) {
      for (Packet& packet : batch) {
        rtp_write_header(packet.bytes, false, 0, sequence, sequence * 160u, 77);
        sequence++;
        std::memset(packet.bytes + rtp_header_bytes, 0x55, payload);
        packet.count = rtp_header_bytes + payload;
      }
      const uint64_t before = allocations;
      const auto start = std::chrono::steady_clock::now();
      for (Packet& packet : batch) {
        if (!out->protect(packet.bytes, packet.count)) return 1;
      }
      const auto middle = std::chrono::steady_clock::now();
      for (Packet& packet : batch) {
        if (in->unprotect(packet.bytes, packet.count) != SrtpSession::Verdict::ok) return 1;
      }
      const auto end = std::chrono::steady_clock::now();
      if (round > 0) taken += allocations - before;
      protect.push_back(std::chrono::duration<double, std::micro>(middle - start).count() / packets);
      unprotect.push_back(std::chrono::duration<double, std::micro>(end - middle).count() / packets);
    }
    std::printf("%-26s%14.2f%14.2f%22.1f\n", names[suite - 1], median(protect), median(unprotect),
                static_cast<double>(taken) / (packets * (rounds - 1)));
  }
  return 0;
}
