// AES and HMAC-SHA1 of OpenSSL for libsrtp2, by the library's own interface for ciphers from elsewhere.
//
// Debian builds libsrtp2 on NSS, which makes a context and takes memory and locks for each packet: 1.9 µs a packet with
// AES-CM. What SRTP is (indices, replays, keys, the layout of packets) stays the library's.
#pragma once

namespace sidetone {

/**
 * Puts OpenSSL's ciphers in place of the library's, which must be initialised and have no session yet. The library
 * tests each against known answers first. False where OpenSSL was not there when this was built, or a test failed: the
 * library's own are used then.
 */
bool use_openssl_primitives();

}  // namespace sidetone
