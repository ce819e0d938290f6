// The far end of a WebRTC leg, as the tests and the bench play it: its connectivity checks, and its side of DTLS.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "plane/webrtc/dtls.h"
#include "plane/webrtc/stun.h"

#ifdef SIDETONE_WEBRTC
#include <openssl/ssl.h>
#endif

namespace sidetone::test {

using Bytes = std::vector<uint8_t>;

inline void put(Bytes& out, size_t value, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(value >> shift));
}

/** A check as a browser sends it. */
inline Bytes check(const std::string& ufrag, const std::string& password, bool nominates) {
  Bytes out;
  const std::string name = ufrag + ":peer";
  put(out, 0x0001, 2);
  put(out, 0, 2);
  put(out, 0x2112a442, 4);
  for (int i = 0; i < 12; i++) out.push_back(static_cast<uint8_t>(i * 7));
  put(out, 0x0006, 2);
  put(out, name.size(), 2);
  out.insert(out.end(), name.begin(), name.end());
  while (out.size() % 4 != 0) out.push_back(0);
  if (nominates) put(out, size_t{0x0025} << 16, 4);
  const auto sized = [&](size_t more) {
    out[2] = static_cast<uint8_t>((out.size() - 20 + more) >> 8);
    out[3] = static_cast<uint8_t>(out.size() - 20 + more);
  };
  sized(24);
  uint8_t mac[20];
  hmac_sha1(password, out.data(), out.size(), mac);
  put(out, 0x00080014, 4);
  out.insert(out.end(), mac, mac + 20);
  sized(8);
  const uint32_t sum = stun_crc32(out.data(), out.size()) ^ 0x5354554e;
  put(out, 0x80280004, 4);
  put(out, sum, 4);
  return out;
}

#ifdef SIDETONE_WEBRTC

/** A browser's side of the handshake: OpenSSL as a client, in memory. */
struct DtlsClient {
  std::shared_ptr<DtlsIdentity> identity = DtlsIdentity::create();
  SSL_CTX* context = ::SSL_CTX_new(::DTLS_client_method());
  EVP_PKEY* key = ::EVP_EC_gen("P-256");
  X509* certificate = ::X509_new();
  SSL* ssl = nullptr;
  BIO* in = ::BIO_new(::BIO_s_mem());
  BIO* out = ::BIO_new(::BIO_s_mem());
  Fingerprint fingerprint;
  std::vector<Bytes> sent;  // all of its datagrams

  explicit DtlsClient(long mtu = 1200, const char* profiles = "SRTP_AES128_CM_SHA1_80:SRTP_AEAD_AES_128_GCM") {
    ::X509_set_version(certificate, 2);
    ::X509_gmtime_adj(::X509_getm_notBefore(certificate), 0);
    ::X509_gmtime_adj(::X509_getm_notAfter(certificate), 3600);
    ::X509_set_pubkey(certificate, key);
    ::X509_sign(certificate, key, ::EVP_sha256());
    unsigned count = 32;
    ::X509_digest(certificate, ::EVP_sha256(), fingerprint.bytes, &count);
    ::SSL_CTX_use_certificate(context, certificate);
    ::SSL_CTX_use_PrivateKey(context, key);
    ::SSL_CTX_set_options(context, SSL_OP_NO_QUERY_MTU);
    ::SSL_CTX_set_tlsext_use_srtp(context, profiles);
    ssl = ::SSL_new(context);
    ::BIO_set_mem_eof_return(in, -1);
    ::BIO_set_mem_eof_return(out, -1);
    ::SSL_set_bio(ssl, in, out);
    ::SSL_set_connect_state(ssl);
    ::DTLS_set_link_mtu(ssl, mtu);
  }
  ~DtlsClient() {
    ::SSL_free(ssl);
    ::SSL_CTX_free(context);
    ::X509_free(certificate);
    ::EVP_PKEY_free(key);
  }

  /** Goes on, and returns its datagrams: a record each. */
  std::vector<Bytes> step() {
    (void)::SSL_do_handshake(ssl);
    char* all = nullptr;
    const long size = BIO_get_mem_data(out, &all);
    const Bytes bytes(all, all + (size > 0 ? size : 0));
    (void)BIO_reset(out);
    std::vector<Bytes> records;
    for (size_t at = 0; at + 13 <= bytes.size();) {
      const size_t length = 13 + (static_cast<size_t>(bytes[at + 11]) << 8 | bytes[at + 12]);
      records.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                           bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
      at += length;
    }
    sent.insert(sent.end(), records.begin(), records.end());
    return records;
  }

  /** Shakes hands with `server`, a few rounds. Returns the largest datagram of the server. */
  size_t meet(DtlsEndpoint& server) {
    size_t largest = 0;
    std::vector<Bytes> from_server;
    const DtlsEndpoint::Out collect = [&](const uint8_t* bytes, size_t count) {
      from_server.emplace_back(bytes, bytes + count);
      largest = count > largest ? count : largest;
    };
    for (int round = 0; round < 6; round++) {
      for (const Bytes& datagram : step()) server.take(datagram.data(), datagram.size(), collect);
      for (const Bytes& datagram : from_server) {
        (void)BIO_reset(in);
        (void)::BIO_write(in, datagram.data(), static_cast<int>(datagram.size()));
        (void)::SSL_do_handshake(ssl);
      }
      from_server.clear();
    }
    return largest;
  }

  /** Takes one datagram of the server. */
  void take(const Bytes& datagram) {
    (void)BIO_reset(in);
    (void)::BIO_write(in, datagram.data(), static_cast<int>(datagram.size()));
  }

  /** The key that it sends SRTP with (AEAD_AES_128_GCM), and its salt. False before the handshake is over. */
  bool sending_key(uint8_t* key) const { return key_of(0, key); }
  /** The key that the server sends SRTP with, and its salt. */
  bool receiving_key(uint8_t* key) const { return key_of(1, key); }

 private:
  /** The key and salt of the client (0) or the server (1), as RFC 5764 §4.2 lays them out. */
  bool key_of(size_t side, uint8_t* key) const {
    constexpr size_t key_bytes = 16, salt_bytes = 12;
    uint8_t material[2 * (key_bytes + salt_bytes)];
    constexpr char label[] = "EXTRACTOR-dtls_srtp";
    if (::SSL_export_keying_material(ssl, material, sizeof material, label, sizeof label - 1, nullptr, 0, 0) != 1)
      return false;
    std::memcpy(key, material + side * key_bytes, key_bytes);
    std::memcpy(key + key_bytes, material + 2 * key_bytes + side * salt_bytes, salt_bytes);
    return true;
  }
};

#endif

}  // namespace sidetone::test
