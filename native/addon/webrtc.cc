// WebRTC: the port of the process, which its main thread opens, and the legs of planes on it.
#include <cstring>

#include "addon/exports.h"
#include "plane/webrtc/webrtc_port.h"

namespace sidetone {
namespace {

constexpr size_t counter_words = 8;

std::shared_ptr<WebrtcPort> find_port(uint32_t number) { return Directory<WebrtcPort>::of_process().find(number); }

IceCredentials read_credentials(Arguments& arguments) {
  IceCredentials own;
  own.ufrag = arguments.text(256);
  own.password = arguments.text(256);
  return own;
}

// webrtcSupported() -> whether this build can do WebRTC
Napi::Value supported(const Napi::CallbackInfo& info) { return Arguments(info).give(webrtc_supported()); }

// opusSupported() -> whether this build can do Opus
Napi::Value supports_opus(const Napi::CallbackInfo& info) { return Arguments(info).give(opus_supported()); }

// webrtcOpen(host, port, consentMs, Uint32Array[2] out) -> errno. `out` becomes the number and the bound port.
Napi::Value open_port(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::string host = arguments.host();
  const Address address = arguments.address(host, arguments.number());
  const uint32_t consent_ms = arguments.number();
  size_t words = 0;
  uint32_t* out = arguments.span<uint32_t>(words);
  if (!arguments.ok() || words < 2) return arguments.refuse();
  int error = 0;
  const std::shared_ptr<WebrtcPort> port = WebrtcPort::open(address, error, int64_t{consent_ms} * 1000);
  if (port) {
    out[0] = port->number();
    out[1] = port->bound_port();
  }
  return arguments.give(static_cast<uint32_t>(error));
}

// webrtcClose(port) -> whether there was such a port
Napi::Value close_port(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<WebrtcPort> port = find_port(arguments.number());
  if (!arguments.ok()) return arguments.refuse();
  if (port) port->retire();
  return arguments.give(port != nullptr);
}

// webrtcFingerprint(port) -> SHA-256 of its certificate as SDP writes it; '' without such a port
Napi::Value fingerprint(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<WebrtcPort> port = find_port(arguments.number());
  if (!arguments.ok()) return arguments.refuse();
  return Napi::String::New(info.Env(), port ? port->fingerprint() : std::string());
}

// webrtcCounters(port, Uint32Array[8] out) -> whether there is such a port
Napi::Value counters(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<WebrtcPort> port = find_port(arguments.number());
  size_t words = 0;
  uint32_t* out = arguments.span<uint32_t>(words);
  if (!arguments.ok() || words < counter_words) return arguments.refuse();
  if (port) {
    const WebrtcCounters all = port->counters();
    const uint32_t values[counter_words] = {
        all.checks,     all.unknown_checks,    all.forged_checks, all.strange_packets, all.overflown_packets,
        all.handshakes, all.failed_handshakes, all.lost_links};
    std::memcpy(out, values, sizeof values);
  }
  return arguments.give(port != nullptr);
}

// legOpenWebrtc(plane, leg, ssrc, port, ufrag, password, hash, Uint8Array fingerprint) -> errno
Napi::Value leg_open(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t ssrc = arguments.number();
  const std::shared_ptr<WebrtcPort> port = find_port(arguments.number());
  IceCredentials own = read_credentials(arguments);
  Fingerprint expected;
  const uint32_t hash = arguments.number();
  size_t count = 0;
  const uint8_t* bytes = arguments.span<uint8_t>(count);
  if (!arguments.ok() || hash < 1 || hash > 3) return arguments.refuse();
  expected.hash = static_cast<FingerprintHash>(hash);
  if (count != expected.count()) return arguments.refuse();
  std::memcpy(expected.bytes, bytes, count);
  constexpr int no_such_port = 19;  // ENODEV
  const int error = port ? plane->open_webrtc(id, ssrc, port, std::move(own), expected) : no_such_port;
  return arguments.give(static_cast<uint32_t>(error));
}

// legRestartIce(plane, leg, ufrag, password) -> whether there is such a leg
Napi::Value leg_restart(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  IceCredentials own = read_credentials(arguments);
  if (!arguments.ok()) return arguments.refuse();
  Leg* leg = plane->leg(id);
  if (leg != nullptr) leg->restart_ice(std::move(own));
  return arguments.give(leg != nullptr);
}

constexpr Export exported[] = {
    {"webrtcSupported", supported},     {"webrtcOpen", open_port},        {"webrtcClose", close_port},
    {"webrtcFingerprint", fingerprint}, {"webrtcCounters", counters},     {"legOpenWebrtc", leg_open},
    {"legRestartIce", leg_restart},     {"opusSupported", supports_opus},
};

}  // namespace

Exports webrtc_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
