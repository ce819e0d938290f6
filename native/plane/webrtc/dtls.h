// DTLS-SRTP (RFC 5763, RFC 5764): the server's side of one handshake, in memory. Datagrams go in and come out; the
// clock is an argument of the caller's choice to call `due`. OpenSSL does the work.
//
//   take(ClientHello) ─ out ─► take(...) ─ out ─► take(Finished) ─► connected: keys()
//                                                     │ the certificate has another fingerprint
//                                                     └────────────► failed
//
// A handshake costs about a millisecond: it runs in the thread of the port (webrtc_port.h), never in a tick.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "plane/srtp/leg_cipher.h"
#include "plane/webrtc/library.h"

namespace sidetone {

/** The certificate of a process, which it makes for itself, and its terms. Every thread may use it. */
class DtlsIdentity {
 public:
  /** Makes a key (P-256) and a certificate for it. nullptr when this build cannot. */
  static std::shared_ptr<DtlsIdentity> create();
  ~DtlsIdentity();
  DtlsIdentity(const DtlsIdentity&) = delete;
  DtlsIdentity& operator=(const DtlsIdentity&) = delete;

  /** The SHA-256 of the certificate as SDP writes it: `AB:CD:...`. */
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  friend class DtlsEndpoint;
  struct Library;
  explicit DtlsIdentity(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
  std::string fingerprint_;
};

class DtlsEndpoint {
 public:
  enum class State : uint8_t {
    handshaking,
    connected,
    failed,  // the handshake broke off, or the far end has another certificate than it said
    closed,  // the far end has said goodbye (close_notify)
  };
  /** Takes one datagram that is to be sent. */
  using Out = std::function<void(const uint8_t* bytes, size_t count)>;

  /** Makes an endpoint. The far end must show the certificate of this fingerprint. nullptr when this build cannot. */
  static std::unique_ptr<DtlsEndpoint> create(std::shared_ptr<DtlsIdentity> identity, const Fingerprint& expected);
  ~DtlsEndpoint();
  DtlsEndpoint(const DtlsEndpoint&) = delete;
  DtlsEndpoint& operator=(const DtlsEndpoint&) = delete;

  /** Takes one datagram. */
  void take(const uint8_t* bytes, size_t count, const Out& out);
  /** Sends the last flight again if it is time (RFC 6347 §4.2.4). */
  void due(const Out& out);
  /** Says goodbye. */
  void close(const Out& out);
  State state() const { return state_; }
  /** The keys of both directions, once it is connected. */
  const SrtpKeys& keys() const { return keys_; }

  /** Whether a datagram may be DTLS: the type of its first record (RFC 7983 §7), and that it is all there. */
  static bool shaped(const uint8_t* bytes, size_t count);

  /** The longest datagram that is sent. */
  static constexpr size_t mtu = 1200;
  /** Datagrams that one handshake takes, at most; what needs more is no browser. */
  static constexpr uint32_t datagrams_max = 200;

 private:
  struct Library;
  explicit DtlsEndpoint(std::unique_ptr<Library> library);
  void go_on(const Out& out);
  void flush(const Out& out);
  bool agree();

  std::unique_ptr<Library> library_;
  State state_ = State::handshaking;
  uint32_t datagrams_ = 0;
  SrtpKeys keys_;
};

}  // namespace sidetone
