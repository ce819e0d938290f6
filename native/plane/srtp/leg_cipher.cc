#include "plane/srtp/leg_cipher.h"

#include <cstring>
#include <utility>

namespace sidetone {

LegCipher::~LegCipher() { ::explicit_bzero(&keys_, sizeof keys_); }

void LegCipher::agree(const SrtpKeys& keys) {
  const size_t count = srtp_key_bytes(keys.suite);
  const bool same_suite = agreed_ && keys.suite == keys_.suite;
  if (!same_suite || std::memcmp(keys.send, keys_.send, count) != 0)
    sending_ = SrtpSession::create(keys.suite, keys.send, SrtpSession::Direction::send);
  if (!same_suite || std::memcmp(keys.receive, keys_.receive, count) != 0) {
    changed_us_ = 0;
    overlaps_ = true;
    if (before_ && before_->has(keys.suite, keys.receive)) {
      std::swap(before_, receiving_);
    } else {
      before_ = std::move(receiving_);
      receiving_ = SrtpSession::create(keys.suite, keys.receive, SrtpSession::Direction::receive);
      if (before_ && receiving_) receiving_->follow(*before_);
    }
  }
  keys_ = keys;
  agreed_ = true;
}

LegCipher::Sealed LegCipher::seal(const uint8_t* bytes, size_t count) {
  if (count > packet_max_bytes) return {};
  std::memcpy(packet_, bytes, count);
  const size_t sealed = seal_in_place(packet_, count);
  return sealed == 0 ? Sealed{} : Sealed{packet_, sealed};
}

size_t LegCipher::seal_in_place(uint8_t* bytes, size_t count) {
  return sending_ && sending_->protect(bytes, count) ? count : 0;
}

size_t LegCipher::seal_rtcp(uint8_t* bytes, size_t count) {
  return sending_ && sending_->protect_rtcp(bytes, count) ? count : 0;
}

bool LegCipher::open(const Datagram& datagram, uint8_t* clear, size_t& count, int64_t now_us) {
  return open(&SrtpSession::unprotect, datagram, clear, count, now_us);
}

bool LegCipher::open_rtcp(const Datagram& datagram, uint8_t* clear, size_t& count, int64_t now_us) {
  return open(&SrtpSession::unprotect_rtcp, datagram, clear, count, now_us);
}

bool LegCipher::open(Opening opening, const Datagram& datagram, uint8_t* clear, size_t& count, int64_t now_us) {
  const auto attempt = [&](SrtpSession& session) {
    count = datagram.count;
    if (count > 0) std::memcpy(clear, datagram.bytes, count);  // a packet that fails may be changed in the attempt
    return (session.*opening)(clear, count);
  };
  if (!receiving_) return false;
  SrtpSession::Verdict verdict = attempt(*receiving_);
  if (before_ && overlaps_) {
    if (verdict == SrtpSession::Verdict::ok && changed_us_ == 0) changed_us_ = now_us;
    if (changed_us_ != 0 && now_us - changed_us_ >= overlap_us) overlaps_ = false;
    else if (verdict == SrtpSession::Verdict::forged) verdict = attempt(*before_);
  }
  if (verdict == SrtpSession::Verdict::forged) forged_++;
  if (verdict == SrtpSession::Verdict::replayed) replayed_++;
  return verdict == SrtpSession::Verdict::ok;
}

}  // namespace sidetone
