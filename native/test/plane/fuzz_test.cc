// Every fuzz target on inputs by chance from a fixed seed: what `make fuzz` does for longer, and guided, with clang.
#include <cstdint>
#include <random>
#include <vector>

#include "test/check.h"

using Target = int (*)(const uint8_t*, size_t);
// The Makefile compiles each target under the name of its file.
extern "C" {
int aac_fuzz(const uint8_t*, size_t);
int address_range_fuzz(const uint8_t*, size_t);
int dtls_fuzz(const uint8_t*, size_t);
int jitter_buffer_fuzz(const uint8_t*, size_t);
int l16_fuzz(const uint8_t*, size_t);
int leg_fuzz(const uint8_t*, size_t);
int mpeg_fuzz(const uint8_t*, size_t);
int opus_fuzz(const uint8_t*, size_t);
int recording_fuzz(const uint8_t*, size_t);
int relay_fuzz(const uint8_t*, size_t);
int room_fuzz(const uint8_t*, size_t);
int rtcp_fuzz(const uint8_t*, size_t);
int rtp_fuzz(const uint8_t*, size_t);
int srtp_fuzz(const uint8_t*, size_t);
int stream_fuzz(const uint8_t*, size_t);
int stun_fuzz(const uint8_t*, size_t);
int telephone_event_fuzz(const uint8_t*, size_t);
int wav_fuzz(const uint8_t*, size_t);
}

namespace {

void withstand(Target target, int inputs, size_t most_bytes) {
  std::mt19937 random(4711);
  std::vector<uint8_t> bytes;
  for (int i = 0; i < inputs; i++) {
    bytes.resize(random() % most_bytes);
    // Half of them of few values, so that the same thing happens again and again.
    const uint32_t mask = random() % 2 == 0 ? 0xff : random();
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() & mask);
    target(bytes.data(), bytes.size());
  }
}

}  // namespace

TEST("parsers withstand bytes by chance") {
  for (const Target target : {address_range_fuzz, rtp_fuzz, rtcp_fuzz, stun_fuzz, telephone_event_fuzz, wav_fuzz})
    withstand(target, 2000, 300);
}

TEST("AAC of any bytes is sound within bounds, or none") { withstand(aac_fuzz, 200, 600); }

TEST("MPEG audio of any bytes is sound within bounds, or none") { withstand(mpeg_fuzz, 200, 2000); }

TEST("jitter buffers and legs withstand packets by chance") {
  withstand(jitter_buffer_fuzz, 500, 1000);
  withstand(opus_fuzz, 300, 1000);
  withstand(l16_fuzz, 300, 1000);
  withstand(leg_fuzz, 100, 1000);
  withstand(srtp_fuzz, 200, 1000);
  withstand(dtls_fuzz, 200, 1000);
}

TEST("a relayed stream never goes back, whatever packets come by chance") { withstand(relay_fuzz, 500, 1000); }

TEST("rooms and their members withstand commands by chance") { withstand(room_fuzz, 60, 600); }

TEST("stream legs withstand writes by chance") { withstand(stream_fuzz, 60, 200); }

TEST("the file of a recording is whole whatever its threads do when, or says what is missing") {
  withstand(recording_fuzz, 400, 200);
}
