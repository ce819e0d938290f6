#include "plane/srtp/openssl_primitives.h"

#ifdef SIDETONE_WEBRTC
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <srtp2/auth.h>
#include <srtp2/cipher.h>

#include <cstring>
#include <memory>
#endif

namespace sidetone {

#ifdef SIDETONE_WEBRTC

namespace {

constexpr size_t block_bytes = 16, cm_salt_bytes = 14, gcm_salt_bytes = 12, sha1_bytes = 20;

srtp_err_status_t status_of(bool done, srtp_err_status_t failure = srtp_err_status_cipher_fail) {
  return done ? srtp_err_status_ok : failure;
}

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { ::EVP_CIPHER_CTX_free(context); }
};
struct FreeMac {
  void operator()(EVP_MAC_CTX* context) const { ::EVP_MAC_CTX_free(context); }
};

/** One key of AES, in counter mode or Galois counter mode. */
struct Aes {
  std::unique_ptr<EVP_CIPHER_CTX, FreeCipher> context{::EVP_CIPHER_CTX_new()};
  const EVP_CIPHER* algorithm = nullptr;
  size_t key_bytes = 0;
  int tag_bytes = 0;               // 0 in counter mode
  uint8_t salt[block_bytes] = {};  // of counter mode
  ~Aes() { ::OPENSSL_cleanse(salt, sizeof salt); }
};

Aes& aes_of(void* state) { return *static_cast<Aes*>(state); }

extern "C" {

srtp_err_status_t free_aes(srtp_cipher_pointer_t cipher) {
  delete static_cast<Aes*>(cipher->state);
  delete cipher;
  return srtp_err_status_ok;
}

/** Sets the key; the salt that follows it is mixed into each counter. */
srtp_err_status_t set_counter_key(void* state, const uint8_t* key) {
  Aes& aes = aes_of(state);
  std::memcpy(aes.salt, key + aes.key_bytes, cm_salt_bytes);
  return status_of(::EVP_EncryptInit_ex(aes.context.get(), aes.algorithm, nullptr, key, nullptr) == 1);
}

srtp_err_status_t set_counter(void* state, uint8_t* iv, srtp_cipher_direction_t) {
  Aes& aes = aes_of(state);
  uint8_t counter[block_bytes];
  for (size_t i = 0; i < block_bytes; i++) counter[i] = static_cast<uint8_t>(aes.salt[i] ^ iv[i]);
  return status_of(::EVP_EncryptInit_ex(aes.context.get(), nullptr, nullptr, nullptr, counter) == 1);
}

/** Encrypts or decrypts in place: counter mode is its own inverse. */
srtp_err_status_t apply_stream(void* state, uint8_t* bytes, unsigned int* count) {
  int written = 0;
  return status_of(::EVP_EncryptUpdate(aes_of(state).context.get(), bytes, &written, bytes, static_cast<int>(*count)) ==
                   1);
}

srtp_err_status_t set_gcm_key(void* state, const uint8_t* key) {
  Aes& aes = aes_of(state);
  return status_of(::EVP_CipherInit_ex(aes.context.get(), aes.algorithm, nullptr, key, nullptr, 1) == 1);
}

srtp_err_status_t set_nonce(void* state, uint8_t* iv, srtp_cipher_direction_t direction) {
  const int seals = direction == srtp_direction_encrypt ? 1 : 0;
  return status_of(::EVP_CipherInit_ex(aes_of(state).context.get(), nullptr, nullptr, nullptr, iv, seals) == 1);
}

srtp_err_status_t add_clear(void* state, const uint8_t* bytes, uint32_t count) {
  int written = 0;
  return status_of(::EVP_CipherUpdate(aes_of(state).context.get(), nullptr, &written, bytes, static_cast<int>(count)) ==
                   1);
}

srtp_err_status_t seal(void* state, uint8_t* bytes, unsigned int* count) {
  int written = 0;
  return status_of(::EVP_CipherUpdate(aes_of(state).context.get(), bytes, &written, bytes, static_cast<int>(*count)) ==
                   1);
}

/** Ends what was sealed and writes its tag. */
srtp_err_status_t take_tag(void* state, uint8_t* tag, uint32_t* count) {
  Aes& aes = aes_of(state);
  uint8_t none[block_bytes];
  int written = 0;
  *count = static_cast<uint32_t>(aes.tag_bytes);
  return status_of(::EVP_CipherFinal_ex(aes.context.get(), none, &written) == 1 &&
                   ::EVP_CIPHER_CTX_ctrl(aes.context.get(), EVP_CTRL_AEAD_GET_TAG, aes.tag_bytes, tag) == 1);
}

/** Decrypts in place what has its tag behind it, and says whether the tag is right. */
srtp_err_status_t unseal(void* state, uint8_t* bytes, unsigned int* count) {
  Aes& aes = aes_of(state);
  const int text = static_cast<int>(*count) - aes.tag_bytes;
  if (text < 0) return srtp_err_status_bad_param;
  EVP_CIPHER_CTX* context = aes.context.get();
  uint8_t none[block_bytes];
  int written = 0;
  if (::EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, aes.tag_bytes, bytes + text) != 1 ||
      ::EVP_CipherUpdate(context, bytes, &written, bytes, text) != 1)
    return srtp_err_status_cipher_fail;
  *count = static_cast<unsigned int>(text);
  return status_of(::EVP_CipherFinal_ex(context, none, &written) == 1, srtp_err_status_auth_fail);
}

srtp_err_status_t make_counter(srtp_cipher_pointer_t* out, int key_len, int tag_len);
srtp_err_status_t make_gcm_128(srtp_cipher_pointer_t* out, int key_len, int tag_len);
srtp_err_status_t make_gcm_256(srtp_cipher_pointer_t* out, int key_len, int tag_len);

}  // extern "C"

// Known answers, which the library asks for beside its own: the counter mode of RFC 3711 appendix B.2 and the first two
// blocks of text in McGrew's and Viega's test cases 2 and 14 for GCM.
const uint8_t cm_key[30] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f,
                            0x3c, 0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd};
uint8_t zeroes[block_bytes] = {};
const uint8_t cm_stream[32] = {0xe0, 0x3e, 0xad, 0x09, 0x35, 0xc9, 0x5e, 0x80, 0xe1, 0x66, 0xb1,
                               0x6d, 0xd9, 0x2b, 0x4e, 0xb4, 0xd2, 0x35, 0x13, 0x16, 0x2b, 0x02,
                               0xd0, 0xf7, 0x2a, 0x43, 0xa2, 0xfe, 0x4a, 0x5f, 0x97, 0xab};
const uint8_t no_text[32] = {};
const uint8_t gcm_key[44] = {};
const uint8_t gcm_128_sealed[32] = {0x03, 0x88, 0xda, 0xce, 0x60, 0xb6, 0xa3, 0x92, 0xf3, 0x28, 0xc2,
                                    0xb9, 0x71, 0xb2, 0xfe, 0x78, 0xab, 0x6e, 0x47, 0xd4, 0x2c, 0xec,
                                    0x13, 0xbd, 0xf5, 0x3a, 0x67, 0xb2, 0x12, 0x57, 0xbd, 0xdf};
const uint8_t gcm_256_sealed[32] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e, 0x07, 0x4e, 0xc5,
                                    0xd3, 0xba, 0xf3, 0x9d, 0x18, 0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99,
                                    0x6b, 0xf0, 0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};
const srtp_cipher_test_case_t cm_case = {30, cm_key, zeroes, 32, no_text, 32, cm_stream, 0, nullptr, 0, nullptr};
const srtp_cipher_test_case_t gcm_128_case = {28, gcm_key, zeroes, 16,     no_text, 32, gcm_128_sealed,
                                              0,  nullptr, 16,     nullptr};
const srtp_cipher_test_case_t gcm_256_case = {44, gcm_key, zeroes, 16,     no_text, 32, gcm_256_sealed,
                                              0,  nullptr, 16,     nullptr};

const srtp_cipher_type_t counter_type = {make_counter, free_aes,        set_counter_key,
                                         nullptr,      apply_stream,    apply_stream,
                                         set_counter,  nullptr,         "AES in counter mode by OpenSSL",
                                         &cm_case,     SRTP_AES_ICM_128};
const srtp_cipher_type_t gcm_128_type = {
    make_gcm_128,  free_aes,        set_gcm_key, add_clear, seal, unseal, set_nonce, take_tag, "AES-128-GCM by OpenSSL",
    &gcm_128_case, SRTP_AES_GCM_128};
const srtp_cipher_type_t gcm_256_type = {
    make_gcm_256,  free_aes,        set_gcm_key, add_clear, seal, unseal, set_nonce, take_tag, "AES-256-GCM by OpenSSL",
    &gcm_256_case, SRTP_AES_GCM_256};

/** Makes a cipher of a type; `key_len` counts key and salt. */
srtp_err_status_t make(srtp_cipher_pointer_t* out, const srtp_cipher_type_t& type, const EVP_CIPHER* algorithm,
                       int key_len, size_t salt_bytes, int tag_len) {
  auto aes = std::make_unique<Aes>();
  aes->algorithm = algorithm;
  aes->key_bytes = static_cast<size_t>(::EVP_CIPHER_get_key_length(algorithm));
  aes->tag_bytes = tag_len;
  if (static_cast<size_t>(key_len) != aes->key_bytes + salt_bytes) return srtp_err_status_bad_param;
  if (!aes->context) return srtp_err_status_alloc_fail;
  *out = new srtp_cipher_t{&type, aes.release(), key_len, static_cast<int>(type.id)};
  return srtp_err_status_ok;
}

srtp_err_status_t make_counter(srtp_cipher_pointer_t* out, int key_len, int) {
  return make(out, counter_type, ::EVP_aes_128_ctr(), key_len, cm_salt_bytes, 0);
}
srtp_err_status_t make_gcm_128(srtp_cipher_pointer_t* out, int key_len, int tag_len) {
  return make(out, gcm_128_type, ::EVP_aes_128_gcm(), key_len, gcm_salt_bytes, tag_len);
}
srtp_err_status_t make_gcm_256(srtp_cipher_pointer_t* out, int key_len, int tag_len) {
  return make(out, gcm_256_type, ::EVP_aes_256_gcm(), key_len, gcm_salt_bytes, tag_len);
}

using Hmac = std::unique_ptr<EVP_MAC_CTX, FreeMac>;

Hmac new_hmac() {
  EVP_MAC* algorithm = ::EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  Hmac context(algorithm == nullptr ? nullptr : ::EVP_MAC_CTX_new(algorithm));
  ::EVP_MAC_free(algorithm);
  return context;
}

extern "C" {

srtp_err_status_t make_hmac(srtp_auth_pointer_t* out, int key_len, int out_len);

srtp_err_status_t free_hmac(srtp_auth_pointer_t hmac) {
  FreeMac()(static_cast<EVP_MAC_CTX*>(hmac->state));
  delete hmac;
  return srtp_err_status_ok;
}

srtp_err_status_t set_hmac_key(void* state, const uint8_t* key, int count) {
  char digest[] = "SHA1";
  const OSSL_PARAM parameters[] = {::OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                   ::OSSL_PARAM_construct_end()};
  return status_of(::EVP_MAC_init(static_cast<EVP_MAC_CTX*>(state), key, static_cast<size_t>(count), parameters) == 1,
                   srtp_err_status_auth_fail);
}

/** Begins anew under the same key. */
srtp_err_status_t begin_hmac(void* state) {
  return status_of(::EVP_MAC_init(static_cast<EVP_MAC_CTX*>(state), nullptr, 0, nullptr) == 1,
                   srtp_err_status_auth_fail);
}

srtp_err_status_t add_to_hmac(void* state, const uint8_t* bytes, int count) {
  return status_of(::EVP_MAC_update(static_cast<EVP_MAC_CTX*>(state), bytes, static_cast<size_t>(count)) == 1,
                   srtp_err_status_auth_fail);
}

/** Adds the last octets and writes the beginning of the HMAC. */
srtp_err_status_t end_hmac(void* state, const uint8_t* bytes, int count, int tag_len, uint8_t* tag) {
  uint8_t whole[sha1_bytes];
  size_t written = 0;
  if (tag_len < 0 || static_cast<size_t>(tag_len) > sizeof whole) return srtp_err_status_bad_param;
  if (add_to_hmac(state, bytes, count) != srtp_err_status_ok ||
      ::EVP_MAC_final(static_cast<EVP_MAC_CTX*>(state), whole, &written, sizeof whole) != 1)
    return srtp_err_status_auth_fail;
  std::memcpy(tag, whole, static_cast<size_t>(tag_len));
  return srtp_err_status_ok;
}

}  // extern "C"

// RFC 2202, test case 1.
const uint8_t hmac_key[sha1_bytes] = {0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b,
                                      0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b};
const uint8_t hmac_text[8] = {'H', 'i', ' ', 'T', 'h', 'e', 'r', 'e'};
const uint8_t hmac_tag[sha1_bytes] = {0xb6, 0x17, 0x31, 0x86, 0x55, 0x05, 0x72, 0x64, 0xe2, 0x8b,
                                      0xc0, 0xb6, 0xfb, 0x37, 0x8c, 0x8e, 0xf1, 0x46, 0xbe, 0x00};
const srtp_auth_test_case_t hmac_case = {sha1_bytes, hmac_key, sizeof hmac_text, hmac_text,
                                         sha1_bytes, hmac_tag, nullptr};
const srtp_auth_type_t hmac_type = {make_hmac,     free_hmac,  set_hmac_key,           end_hmac,
                                    add_to_hmac,   begin_hmac, "HMAC-SHA1 by OpenSSL", &hmac_case,
                                    SRTP_HMAC_SHA1};

srtp_err_status_t make_hmac(srtp_auth_pointer_t* out, int key_len, int out_len) {
  if (key_len > static_cast<int>(sha1_bytes) || out_len > static_cast<int>(sha1_bytes))
    return srtp_err_status_bad_param;
  Hmac context = new_hmac();
  if (!context) return srtp_err_status_alloc_fail;
  *out = new srtp_auth_t{&hmac_type, context.release(), out_len, key_len, 0};
  return srtp_err_status_ok;
}

}  // namespace

bool use_openssl_primitives() {
  // The threads of planes outlive main, so the library is not taken down at exit.
  return ::OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) == 1 &&
         ::srtp_replace_cipher_type(&counter_type, SRTP_AES_ICM_128) == srtp_err_status_ok &&
         ::srtp_replace_cipher_type(&gcm_128_type, SRTP_AES_GCM_128) == srtp_err_status_ok &&
         ::srtp_replace_cipher_type(&gcm_256_type, SRTP_AES_GCM_256) == srtp_err_status_ok &&
         ::srtp_replace_auth_type(&hmac_type, SRTP_HMAC_SHA1) == srtp_err_status_ok;
}

#else

bool use_openssl_primitives() { return false; }

#endif

}  // namespace sidetone
