#include "plane/srtp/srtp_session.h"

#include <utility>

#include "plane/srtp/openssl_primitives.h"

#ifdef SIDETONE_SRTP
#include <srtp2/srtp.h>

#include <algorithm>
#include <cstring>
#endif

namespace sidetone {

size_t srtp_key_bytes(SrtpSuite suite) {
  switch (suite) {
    case SrtpSuite::aes_cm_128_hmac_sha1_80:
    case SrtpSuite::aes_cm_128_hmac_sha1_32: return 16 + 14;
    case SrtpSuite::aead_aes_128_gcm: return 16 + 12;
    case SrtpSuite::aead_aes_256_gcm: return 32 + 12;
  }
  return 0;
}

#ifdef SIDETONE_SRTP

namespace {

constexpr size_t rtp_least_bytes = 12, rtcp_least_bytes = 8;

/** The library, set up once for the process. It is never shut down: a worker that ends leaves it to the others. */
bool library_is_up() {
  static const bool up = [] {
    const bool begun = ::srtp_init() == srtp_err_status_ok;
    if (begun) (void)use_openssl_primitives();  // without them it is slower, and all the same
    return begun;
  }();
  return up;
}

srtp_profile_t profile_of(SrtpSuite suite) {
  switch (suite) {
    case SrtpSuite::aes_cm_128_hmac_sha1_80: return srtp_profile_aes128_cm_sha1_80;
    case SrtpSuite::aes_cm_128_hmac_sha1_32: return srtp_profile_aes128_cm_sha1_32;
    case SrtpSuite::aead_aes_128_gcm: return srtp_profile_aead_aes_128_gcm;
    case SrtpSuite::aead_aes_256_gcm: return srtp_profile_aead_aes_256_gcm;
  }
  return srtp_profile_reserved;
}

SrtpSession::Verdict verdict_of(srtp_err_status_t status) {
  if (status == srtp_err_status_ok) return SrtpSession::Verdict::ok;
  return status == srtp_err_status_replay_fail || status == srtp_err_status_replay_old ? SrtpSession::Verdict::replayed
                                                                                       : SrtpSession::Verdict::forged;
}

uint32_t be32(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 |
         at[3];
}

}  // namespace

struct SrtpSession::Library {
  srtp_t session = nullptr;
  uint32_t sources[sources_max] = {};
  size_t known = 0;

  ~Library() {
    if (session != nullptr) (void)::srtp_dealloc(session);
  }

  bool knows(uint32_t ssrc) const { return std::find(sources, sources + known, ssrc) != sources + known; }

  /** Runs `work` on a packet of `ssrc`, if there is a context for it or one may be made. */
  template <typename Work>
  Verdict receive(uint32_t ssrc, size_t& count, Work work) {
    const bool is_new = !knows(ssrc);
    if (is_new && known == sources_max) return Verdict::forged;
    int length = static_cast<int>(count);
    const Verdict verdict = verdict_of(work(&length));
    if (verdict != Verdict::ok) return verdict;
    if (is_new) sources[known++] = ssrc;
    count = static_cast<size_t>(length);
    return verdict;
  }
};

bool srtp_supports(SrtpSuite suite) {
  const uint8_t key[srtp_key_max_bytes] = {};
  return SrtpSession::create(suite, key, SrtpSession::Direction::send) != nullptr;
}

std::unique_ptr<SrtpSession> SrtpSession::create(SrtpSuite suite, const uint8_t* key, Direction direction) {
  if (!library_is_up()) return nullptr;
  srtp_policy_t policy;
  std::memset(&policy, 0, sizeof policy);
  const srtp_profile_t profile = profile_of(suite);
  if (::srtp_crypto_policy_set_from_profile_for_rtp(&policy.rtp, profile) != srtp_err_status_ok ||
      ::srtp_crypto_policy_set_from_profile_for_rtcp(&policy.rtcp, profile) != srtp_err_status_ok)
    return nullptr;
  uint8_t own_key[srtp_key_max_bytes] = {};  // the library does not change it, and says so nowhere
  std::memcpy(own_key, key, srtp_key_bytes(suite));
  policy.ssrc.type = direction == Direction::send ? ssrc_any_outbound : ssrc_any_inbound;
  policy.key = own_key;
  policy.window_size = window;
  policy.allow_repeat_tx = 0;
  auto library = std::make_unique<Library>();
  const bool made = ::srtp_create(&library->session, &policy) == srtp_err_status_ok;
  ::explicit_bzero(own_key, sizeof own_key);
  if (!made) {
    library->session = nullptr;
    return nullptr;
  }
  return std::unique_ptr<SrtpSession>(new SrtpSession(std::move(library)));
}

bool SrtpSession::protect(uint8_t* bytes, size_t& count) {
  int length = static_cast<int>(count);
  if (count < rtp_least_bytes || ::srtp_protect(library_->session, bytes, &length) != srtp_err_status_ok) return false;
  count = static_cast<size_t>(length);
  return true;
}

bool SrtpSession::protect_rtcp(uint8_t* bytes, size_t& count) {
  int length = static_cast<int>(count);
  if (count < rtcp_least_bytes || ::srtp_protect_rtcp(library_->session, bytes, &length) != srtp_err_status_ok)
    return false;
  count = static_cast<size_t>(length);
  return true;
}

SrtpSession::Verdict SrtpSession::unprotect(uint8_t* bytes, size_t& count) {
  if (count < rtp_least_bytes) return Verdict::forged;
  return library_->receive(be32(bytes + 8), count,
                           [&](int* length) { return ::srtp_unprotect(library_->session, bytes, length); });
}

SrtpSession::Verdict SrtpSession::unprotect_rtcp(uint8_t* bytes, size_t& count) {
  if (count < rtcp_least_bytes) return Verdict::forged;
  return library_->receive(be32(bytes + 4), count,
                           [&](int* length) { return ::srtp_unprotect_rtcp(library_->session, bytes, length); });
}

#else

struct SrtpSession::Library {};

bool srtp_supports(SrtpSuite) { return false; }
std::unique_ptr<SrtpSession> SrtpSession::create(SrtpSuite, const uint8_t*, Direction) { return nullptr; }
bool SrtpSession::protect(uint8_t*, size_t&) { return false; }
bool SrtpSession::protect_rtcp(uint8_t*, size_t&) { return false; }
SrtpSession::Verdict SrtpSession::unprotect(uint8_t*, size_t&) { return Verdict::forged; }
SrtpSession::Verdict SrtpSession::unprotect_rtcp(uint8_t*, size_t&) { return Verdict::forged; }

#endif

SrtpSession::SrtpSession(std::unique_ptr<Library> library) : library_(std::move(library)) {}
SrtpSession::~SrtpSession() = default;

}  // namespace sidetone
