// What WebRTC takes from OpenSSL (Debian's libssl-dev), which is found when the addon is built. Without it, or without
// libsrtp2, `webrtc_supported` is false and nothing else of this folder is reached.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sidetone {

/** Whether this build can do WebRTC. */
bool webrtc_supported();

/** Writes the HMAC-SHA1 of `bytes`, 20 bytes; zeros where this build has no OpenSSL. */
void hmac_sha1(std::string_view key, const uint8_t* bytes, size_t count, uint8_t* out);

/** The hash of a certificate in `a=fingerprint` (RFC 8122 §5). */
enum class FingerprintHash : uint8_t { sha256 = 1, sha384 = 2, sha512 = 3 };
constexpr size_t fingerprint_max_bytes = 64;

struct Fingerprint {
  FingerprintHash hash = FingerprintHash::sha256;
  uint8_t bytes[fingerprint_max_bytes] = {};

  size_t count() const { return hash == FingerprintHash::sha256 ? 32 : hash == FingerprintHash::sha384 ? 48 : 64; }
};

}  // namespace sidetone
