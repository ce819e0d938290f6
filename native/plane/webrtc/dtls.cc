#include "plane/webrtc/dtls.h"

#include <cstdio>
#include <cstring>
#include <utility>

#ifdef SIDETONE_WEBRTC
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#endif

namespace sidetone {
namespace {

constexpr size_t record_header_bytes = 13;

}  // namespace

bool DtlsEndpoint::shaped(const uint8_t* bytes, size_t count) {
  if (count < record_header_bytes || bytes[0] < 20 || bytes[0] > 25 || bytes[1] != 0xfe) return false;
  for (size_t at = 0; at < count;) {
    if (count - at < record_header_bytes) return false;
    const size_t length = static_cast<size_t>(bytes[at + 11]) << 8 | bytes[at + 12];
    if (length > count - at - record_header_bytes) return false;
    at += record_header_bytes + length;
  }
  return true;
}

#ifdef SIDETONE_WEBRTC

namespace {

/** Any certificate is taken in the handshake: it is known by its fingerprint, which `agree` compares. */
int take_any_certificate(int, X509_STORE_CTX*) { return 1; }

const EVP_MD* digest_of(FingerprintHash hash) {
  switch (hash) {
    case FingerprintHash::sha256: return ::EVP_sha256();
    case FingerprintHash::sha384: return ::EVP_sha384();
    case FingerprintHash::sha512: return ::EVP_sha512();
  }
  return nullptr;
}

bool sign_with(X509* certificate, EVP_PKEY* key) {
  uint8_t random[20];
  if (::RAND_bytes(random, sizeof random) != 1) return false;
  random[0] &= 0x7f;
  BIGNUM* serial = ::BN_bin2bn(random, sizeof random, nullptr);
  const bool numbered =
      serial != nullptr && ::BN_to_ASN1_INTEGER(serial, ::X509_get_serialNumber(certificate)) != nullptr;
  ::BN_free(serial);
  X509_NAME* name = ::X509_get_subject_name(certificate);
  constexpr long day_sec = 86'400;
  return numbered && ::X509_set_version(certificate, 2) == 1 &&
         ::X509_gmtime_adj(::X509_getm_notBefore(certificate), -day_sec) != nullptr &&
         ::X509_gmtime_adj(::X509_getm_notAfter(certificate), 3650 * day_sec) != nullptr &&
         ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("sidetone"), -1,
                                      -1, 0) == 1 &&
         ::X509_set_issuer_name(certificate, name) == 1 && ::X509_set_pubkey(certificate, key) == 1 &&
         ::X509_sign(certificate, key, ::EVP_sha256()) > 0;
}

}  // namespace

bool webrtc_supported() { return srtp_supports(SrtpSuite::aes_cm_128_hmac_sha1_80); }

void hmac_sha1(std::string_view key, const uint8_t* bytes, size_t count, uint8_t* out) {
  unsigned length = 20;
  if (::HMAC(::EVP_sha1(), key.data(), static_cast<int>(key.size()), bytes, count, out, &length) == nullptr)
    std::memset(out, 0, 20);
}

struct DtlsIdentity::Library {
  SSL_CTX* context = nullptr;
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;

  ~Library() {
    ::SSL_CTX_free(context);
    ::X509_free(certificate);
    ::EVP_PKEY_free(key);
  }

  bool make() {
    key = ::EVP_EC_gen("P-256");
    certificate = ::X509_new();
    context = ::SSL_CTX_new(::DTLS_server_method());
    if (key == nullptr || certificate == nullptr || context == nullptr || !sign_with(certificate, key)) return false;
    ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    ::SSL_CTX_set_cert_verify_callback(
        context, [](X509_STORE_CTX* store, void*) { return take_any_certificate(1, store); }, nullptr);
    ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    ::SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_QUERY_MTU | SSL_OP_NO_RENEGOTIATION);
    ::SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION);
    ::SSL_CTX_set_read_ahead(context, 1);
    const char* ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384";
    // srtp functions of OpenSSL give 0 for success.
    return ::SSL_CTX_use_certificate(context, certificate) == 1 && ::SSL_CTX_use_PrivateKey(context, key) == 1 &&
           ::SSL_CTX_set_cipher_list(context, ciphers) == 1 &&
           ::SSL_CTX_set_tlsext_use_srtp(context, "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80") == 0;
  }
};

DtlsIdentity::DtlsIdentity(std::unique_ptr<Library> library) : library_(std::move(library)) {
  uint8_t hash[32];
  unsigned count = sizeof hash;
  if (::X509_digest(library_->certificate, ::EVP_sha256(), hash, &count) != 1) return;
  for (unsigned i = 0; i < count; i++) {
    char text[4];
    std::snprintf(text, sizeof text, i == 0 ? "%02X" : ":%02X", hash[i]);
    fingerprint_ += text;
  }
}

std::shared_ptr<DtlsIdentity> DtlsIdentity::create() {
  // The threads of ports outlive main, so the library is not taken down at exit.
  if (::OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) return nullptr;
  auto library = std::make_unique<Library>();
  const bool made = library->make();
  ::ERR_clear_error();
  return made ? std::shared_ptr<DtlsIdentity>(new DtlsIdentity(std::move(library))) : nullptr;
}

struct DtlsEndpoint::Library {
  std::shared_ptr<DtlsIdentity> identity;
  Fingerprint expected;
  SSL* ssl = nullptr;
  BIO* in = nullptr;   // which `ssl` owns
  BIO* out = nullptr;  // also

  ~Library() { ::SSL_free(ssl); }
};

std::unique_ptr<DtlsEndpoint> DtlsEndpoint::create(std::shared_ptr<DtlsIdentity> identity,
                                                   const Fingerprint& expected) {
  if (!identity) return nullptr;
  auto library = std::make_unique<Library>();
  library->ssl = ::SSL_new(identity->library_->context);
  library->in = ::BIO_new(::BIO_s_mem());
  library->out = ::BIO_new(::BIO_s_mem());
  if (library->ssl == nullptr || library->in == nullptr || library->out == nullptr) {
    ::BIO_free(library->in);
    ::BIO_free(library->out);
    return nullptr;
  }
  // An empty BIO means "not yet", not the end.
  ::BIO_set_mem_eof_return(library->in, -1);
  ::BIO_set_mem_eof_return(library->out, -1);
  ::SSL_set_bio(library->ssl, library->in, library->out);
  ::SSL_set_accept_state(library->ssl);
  ::DTLS_set_link_mtu(library->ssl, mtu);
  library->identity = std::move(identity);
  library->expected = expected;
  return std::unique_ptr<DtlsEndpoint>(new DtlsEndpoint(std::move(library)));
}

void DtlsEndpoint::take(const uint8_t* bytes, size_t count, const Out& out) {
  if (state_ == State::failed || state_ == State::closed || !shaped(bytes, count)) return;
  if (state_ == State::handshaking && ++datagrams_ > datagrams_max) {
    state_ = State::failed;
    return;
  }
  (void)BIO_reset(library_->in);
  (void)::BIO_write(library_->in, bytes, static_cast<int>(count));
  go_on(out);
}

/** Lets OpenSSL work on what has come. */
void DtlsEndpoint::go_on(const Out& out) {
  ::ERR_clear_error();
  if (state_ == State::handshaking) {
    const int result = ::SSL_accept(library_->ssl);
    flush(out);
    if (result == 1) {
      state_ = agree() ? State::connected : State::failed;
    } else {
      const int error = ::SSL_get_error(library_->ssl, result);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) state_ = State::failed;
    }
  } else {
    // Alerts, and flights that were lost on their way. Data, as of a data channel, are nobody's: they are read to their
    // end, or the next datagram would not be looked at.
    uint8_t nothing[mtu];
    while (::SSL_read(library_->ssl, nothing, sizeof nothing) > 0) {}
    flush(out);
    if ((::SSL_get_shutdown(library_->ssl) & SSL_RECEIVED_SHUTDOWN) != 0) state_ = State::closed;
  }
  ::ERR_clear_error();
}

/** Sends what OpenSSL has written: records, laid together in datagrams of at most `mtu` bytes. */
void DtlsEndpoint::flush(const Out& out) {
  char* all = nullptr;
  const long size = BIO_get_mem_data(library_->out, &all);
  const size_t count = size > 0 ? static_cast<size_t>(size) : 0;
  const auto* bytes = reinterpret_cast<const uint8_t*>(all);
  size_t from = 0;
  size_t at = 0;
  while (count - at >= record_header_bytes) {
    const size_t record = record_header_bytes + (static_cast<size_t>(bytes[at + 11]) << 8 | bytes[at + 12]);
    if (record > count - at) break;
    if (at > from && at + record - from > mtu) {
      out(bytes + from, at - from);
      from = at;
    }
    at += record;
  }
  if (at > from) out(bytes + from, at - from);
  (void)BIO_reset(library_->out);
}

void DtlsEndpoint::due(const Out& out) {
  if (state_ != State::handshaking) return;
  ::ERR_clear_error();
  if (DTLSv1_handle_timeout(library_->ssl) < 0) state_ = State::failed;
  flush(out);
  ::ERR_clear_error();
}

void DtlsEndpoint::close(const Out& out) {
  if (state_ != State::connected) return;
  ::ERR_clear_error();
  (void)::SSL_shutdown(library_->ssl);
  flush(out);
  ::ERR_clear_error();
  state_ = State::closed;
}

/** The end of the handshake: who is it, and which keys does it give (RFC 5764 §4.2)? */
bool DtlsEndpoint::agree() {
  SSL* ssl = library_->ssl;
  X509* certificate = ::SSL_get0_peer_certificate(ssl);
  uint8_t hash[fingerprint_max_bytes] = {};
  unsigned count = sizeof hash;
  const Fingerprint& expected = library_->expected;
  if (certificate == nullptr || ::X509_digest(certificate, digest_of(expected.hash), hash, &count) != 1) return false;
  if (count != expected.count() || std::memcmp(hash, expected.bytes, count) != 0) return false;
  const SRTP_PROTECTION_PROFILE* profile = ::SSL_get_selected_srtp_profile(ssl);
  if (profile == nullptr) return false;
  const bool gcm = profile->id == SRTP_AEAD_AES_128_GCM;
  if (!gcm && profile->id != SRTP_AES128_CM_SHA1_80) return false;
  keys_.suite = gcm ? SrtpSuite::aead_aes_128_gcm : SrtpSuite::aes_cm_128_hmac_sha1_80;
  const size_t key = 16, salt = srtp_key_bytes(keys_.suite) - key;
  uint8_t material[2 * srtp_key_max_bytes];
  constexpr char label[] = "EXTRACTOR-dtls_srtp";
  if (::SSL_export_keying_material(ssl, material, 2 * (key + salt), label, sizeof label - 1, nullptr, 0, 0) != 1)
    return false;
  // The client's key, the server's key, the client's salt, the server's salt; we are the server.
  std::memcpy(keys_.receive, material, key);
  std::memcpy(keys_.send, material + key, key);
  std::memcpy(keys_.receive + key, material + 2 * key, salt);
  std::memcpy(keys_.send + key, material + 2 * key + salt, salt);
  ::explicit_bzero(material, sizeof material);
  return true;
}

#else

struct DtlsIdentity::Library {};
struct DtlsEndpoint::Library {};

bool webrtc_supported() { return false; }
void hmac_sha1(std::string_view, const uint8_t*, size_t, uint8_t* out) { std::memset(out, 0, 20); }
DtlsIdentity::DtlsIdentity(std::unique_ptr<Library> library) : library_(std::move(library)) {}
std::shared_ptr<DtlsIdentity> DtlsIdentity::create() { return nullptr; }
std::unique_ptr<DtlsEndpoint> DtlsEndpoint::create(std::shared_ptr<DtlsIdentity>, const Fingerprint&) {
  return nullptr;
}
void DtlsEndpoint::take(const uint8_t*, size_t, const Out&) {}
void DtlsEndpoint::due(const Out&) {}
void DtlsEndpoint::close(const Out&) {}

#endif

DtlsEndpoint::DtlsEndpoint(std::unique_ptr<Library> library) : library_(std::move(library)) {}
DtlsEndpoint::~DtlsEndpoint() { ::explicit_bzero(&keys_, sizeof keys_); }
DtlsIdentity::~DtlsIdentity() = default;

}  // namespace sidetone
