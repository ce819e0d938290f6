#include "plane/srtp/srtp_session.h"

#include <array>
#include <utility>

#include "plane/srtp/openssl_primitives.h"

#ifdef SIDETONE_SRTP
#include <arpa/inet.h>
#include <srtp2/srtp.h>

#include <cstring>

#include "plane/io/port.h"
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
  using Work = srtp_err_status_t (*)(srtp_t session, void* bytes, int* length);

  srtp_t session = nullptr;
  SrtpSuite suite = SrtpSuite::aes_cm_128_hmac_sha1_80;
  srtp_policy_t policy;
  uint8_t key[srtp_key_max_bytes] = {};  // the library does not change it, and says so nowhere
  SrtpSources sources;
  uint32_t unheard = 0;  // packets that were not opened before the first one that was

  ~Library() {
    if (session != nullptr) (void)::srtp_dealloc(session);
    ::explicit_bzero(key, sizeof key);
  }

  Verdict run(Work work, uint8_t* bytes, size_t& count) const {
    int length = static_cast<int>(count);
    const Verdict verdict = verdict_of(work(session, bytes, &length));
    if (verdict == Verdict::ok) count = static_cast<size_t>(length);
    return verdict;
  }

  void give_up(uint32_t ssrc) const { (void)::srtp_remove_stream(session, htonl(ssrc)); }

  /** Opens the first packet of a source whose numbers have rolled over so often. */
  Verdict run_at(int64_t rolled_over, uint32_t ssrc, uint8_t* bytes, size_t& count) {
    if (rolled_over == 0) return run(::srtp_unprotect, bytes, count);
    srtp_policy_t own = policy;
    own.ssrc.type = ssrc_specific;
    own.ssrc.value = ssrc;
    own.key = key;
    if (::srtp_add_stream(session, &own) != srtp_err_status_ok) return Verdict::forged;
    const bool placed = ::srtp_set_stream_roc(session, ssrc, static_cast<uint32_t>(rolled_over)) == srtp_err_status_ok;
    const Verdict verdict = placed ? run(::srtp_unprotect, bytes, count) : Verdict::forged;
    if (verdict != Verdict::ok) give_up(ssrc);
    return verdict;
  }

  Verdict admitted(Verdict verdict, uint32_t ssrc, int64_t index) {
    uint32_t silent = 0;
    if (verdict == Verdict::ok && sources.admit(ssrc, index, silent)) give_up(silent);
    return verdict;
  }

  Verdict open(uint32_t ssrc, uint16_t sequence, uint8_t* bytes, size_t& count) {
    SrtpSources::Current* const source = sources.current(ssrc);
    if (source == nullptr) return open_first(ssrc, sequence, bytes, count);
    const int64_t index = SrtpSources::index_of(source->last, sequence);
    if (index <= source->floor) return Verdict::replayed;
    const Verdict verdict = run(::srtp_unprotect, bytes, count);
    if (verdict == Verdict::ok) sources.hear(*source, index);
    return verdict;
  }

  /** Roll-overs to try a packet with, beside none; 0: no further one. */
  using RollOvers = std::array<int64_t, 3>;

  /** Opens a packet of a source that has no context. */
  Verdict open_first(uint32_t ssrc, uint16_t sequence, uint8_t* bytes, size_t& count) {
    const SrtpSources::Past* const past = sources.past(ssrc);
    if (past == nullptr && sources.full()) return Verdict::forged;
    if (past != nullptr && past->replays) {
      const int64_t index = SrtpSources::index_of(past->last, sequence);
      if (index <= past->last) return Verdict::replayed;
      return admitted(run_at(index >> 16, ssrc, bytes, count), ssrc, index);
    }
    const RollOvers known = {{past != nullptr ? SrtpSources::index_of(past->last, sequence) >> 16 : 0}};
    const RollOvers guessed = past != nullptr ? known : unheard_roll_overs(sequence);
    uint8_t kept[Datagram::bytes_max];  // a packet that fails may be changed in the attempt
    if (count > sizeof kept) return Verdict::forged;
    std::memcpy(kept, bytes, count);
    Verdict verdict = admitted(run(::srtp_unprotect, bytes, count), ssrc, sequence);
    for (const int64_t rolled_over : guessed) {
      if (verdict != Verdict::forged) break;
      if (rolled_over == 0) continue;
      std::memcpy(bytes, kept, count);
      verdict = admitted(run_at(rolled_over, ssrc, bytes, count), ssrc, rolled_over << 16 | sequence);
    }
    return verdict;
  }

  /**
   * How often the numbers of a far end may have rolled over before its first packet. It may have done so once in
   * packets that were lost or came before its key, and any number of times in a call that another node had: those are
   * sought in the first packets, two with each, and later at leisure, as each attempt makes a context.
   */
  RollOvers unheard_roll_overs(uint16_t sequence) {
    constexpr uint16_t unheard_most = 0x2000;
    constexpr uint32_t tried_each = 4;
    constexpr uint32_t sought_most = 128;  // 46 hours of 50 packets a second
    if (!sources.none()) return {};
    const uint32_t packet = unheard++;
    const bool is_try = packet % tried_each == 0;
    const int64_t once = is_try && sequence < unheard_most ? 1 : 0;
    if (packet < sought_most / 2) return {{once, 1 + 2 * packet, 2 + 2 * packet}};
    return {{once, is_try ? 1 + packet / tried_each % sought_most : 0}};
  }

  Verdict open_rtcp(uint32_t ssrc, uint8_t* bytes, size_t& count) {
    SrtpSources::Current* const source = sources.current(ssrc);
    if (source != nullptr ? source->returned : sources.past(ssrc) != nullptr) return Verdict::replayed;
    if (source == nullptr && sources.full()) return Verdict::forged;
    const Verdict verdict = run(::srtp_unprotect_rtcp, bytes, count);
    if (source == nullptr) return admitted(verdict, ssrc, -1);
    if (verdict == Verdict::ok) sources.hear(*source, -1);
    return verdict;
  }
};

bool srtp_supports(SrtpSuite suite) {
  const uint8_t key[srtp_key_max_bytes] = {};
  return SrtpSession::create(suite, key, SrtpSession::Direction::send) != nullptr;
}

std::unique_ptr<SrtpSession> SrtpSession::create(SrtpSuite suite, const uint8_t* key, Direction direction) {
  if (!library_is_up()) return nullptr;
  auto library = std::make_unique<Library>();
  srtp_policy_t& policy = library->policy;
  std::memset(&policy, 0, sizeof policy);
  const srtp_profile_t profile = profile_of(suite);
  if (::srtp_crypto_policy_set_from_profile_for_rtp(&policy.rtp, profile) != srtp_err_status_ok ||
      ::srtp_crypto_policy_set_from_profile_for_rtcp(&policy.rtcp, profile) != srtp_err_status_ok)
    return nullptr;
  library->suite = suite;
  std::memcpy(library->key, key, srtp_key_bytes(suite));
  policy.ssrc.type = direction == Direction::send ? ssrc_any_outbound : ssrc_any_inbound;
  policy.key = library->key;
  policy.window_size = window;
  policy.allow_repeat_tx = 0;
  if (::srtp_create(&library->session, &policy) != srtp_err_status_ok) {
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
  return library_->open(be32(bytes + 8), static_cast<uint16_t>(bytes[2] << 8 | bytes[3]), bytes, count);
}

SrtpSession::Verdict SrtpSession::unprotect_rtcp(uint8_t* bytes, size_t& count) {
  if (count < rtcp_least_bytes) return Verdict::forged;
  return library_->open_rtcp(be32(bytes + 4), bytes, count);
}

bool SrtpSession::has(SrtpSuite suite, const uint8_t* key) const {
  return suite == library_->suite && std::memcmp(key, library_->key, srtp_key_bytes(suite)) == 0;
}

void SrtpSession::follow(const SrtpSession& before) { library_->sources.follow(before.library_->sources); }

#else

struct SrtpSession::Library {};

bool srtp_supports(SrtpSuite) { return false; }
std::unique_ptr<SrtpSession> SrtpSession::create(SrtpSuite, const uint8_t*, Direction) { return nullptr; }
bool SrtpSession::protect(uint8_t*, size_t&) { return false; }
bool SrtpSession::protect_rtcp(uint8_t*, size_t&) { return false; }
SrtpSession::Verdict SrtpSession::unprotect(uint8_t*, size_t&) { return Verdict::forged; }
SrtpSession::Verdict SrtpSession::unprotect_rtcp(uint8_t*, size_t&) { return Verdict::forged; }
bool SrtpSession::has(SrtpSuite, const uint8_t*) const { return false; }
void SrtpSession::follow(const SrtpSession&) {}

#endif

SrtpSession::SrtpSession(std::unique_ptr<Library> library) : library_(std::move(library)) {}
SrtpSession::~SrtpSession() = default;

}  // namespace sidetone
