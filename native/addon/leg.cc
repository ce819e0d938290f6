// The legs of a plane.
#include <cstring>

#include "addon/exports.h"
#include "addon/plane_call.h"

namespace sidetone {
namespace {

constexpr size_t counter_words = 10;

void write_counters(const Counters& counters, uint32_t* out) {
  out[0] = counters.received;
  out[1] = counters.sent;
  out[2] = static_cast<uint32_t>(counters.lost);
  out[3] = counters.late;
  out[4] = counters.jitter_us;
  out[5] = counters.delay_us;
  out[6] = counters.round_trip_us;
  out[7] = counters.mos_milli;
  out[8] = counters.srtp_forged;
  out[9] = counters.srtp_replayed;
}

// legOpen(plane, leg, host, port) -> errno
Napi::Value leg_open(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const std::string host = arguments.host();
  const uint32_t port = arguments.number();
  const Address rtp = arguments.address(host, port);
  const Address rtcp = arguments.address(host, port + 1);
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(static_cast<uint32_t>(plane->open(id, rtp, rtcp)));
}

/** Gives script the counters that `read` takes from a leg, and whether there was such a leg. */
template <typename Read>
Napi::Value give_counters(const Napi::CallbackInfo& info, Read read) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  size_t words = 0;
  uint32_t* out = arguments.span<uint32_t>(words);
  if (!arguments.ok() || words < counter_words) return arguments.refuse();
  Counters counters;
  const bool found = read(*plane, id, counters);
  write_counters(counters, out);
  return arguments.give(found);
}

// legClose(plane, leg, Uint32Array[10] counters) -> whether there was such a leg
Napi::Value leg_close(const Napi::CallbackInfo& info) {
  return give_counters(
      info, [](Plane& plane, uint32_t id, Counters& counters) { return plane.close(id, counters, now_of_system()); });
}

// legCounters(plane, leg, Uint32Array[10] counters) -> whether there is such a leg
Napi::Value leg_counters(const Napi::CallbackInfo& info) {
  return give_counters(info,
                       [](Plane& plane, uint32_t id, Counters& counters) { return plane.counters(id, counters); });
}

/** Reads the keys of both directions; none where `suite` is 0. False when they are not those of a suite. */
bool read_keys(Arguments& arguments, uint32_t suite, SrtpKeys& keys) {
  size_t send_bytes = 0;
  size_t receive_bytes = 0;
  const uint8_t* send = arguments.span<uint8_t>(send_bytes);
  const uint8_t* receive = arguments.span<uint8_t>(receive_bytes);
  if (!arguments.ok() || suite > srtp_suite_max) return false;
  if (suite == 0) return true;
  keys.suite = static_cast<SrtpSuite>(suite);
  const size_t expected = srtp_key_bytes(keys.suite);
  if (send_bytes != expected || receive_bytes != expected) return false;
  std::memcpy(keys.send, send, expected);
  std::memcpy(keys.receive, receive, expected);
  return true;
}

// srtpSupports(suite) -> whether this build can do it
Napi::Value srtp_supports_suite(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t suite = arguments.number();
  if (!arguments.ok() || suite == 0 || suite > srtp_suite_max) return arguments.refuse();
  return arguments.give(srtp_supports(static_cast<SrtpSuite>(suite)));
}

// legNegotiate(plane, leg, remoteHost, rtpPort, rtcpPort, codec, payloadType, eventPayloadType | -1, eventClockHz,
// ownPayloadType | -1, ownEventPayloadType | -1, ptimeMs, maxBitrate | 0, send, receive, held, ringing, holding,
// learnFrom, firstSequence | -1, firstTimestamp, srtpSuite | 0, Uint8Array sendKey, Uint8Array receiveKey) -> found
Napi::Value leg_negotiate(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const std::string host = arguments.host();
  Negotiated agreed;
  agreed.rtp = arguments.address(host, arguments.number());
  agreed.rtcp = arguments.address(host, arguments.number());
  const uint32_t codec = arguments.number();
  const uint32_t payload_type = arguments.number();
  agreed.event_payload_type = arguments.integer();
  agreed.event_clock_hz = arguments.number();
  agreed.own_payload_type = arguments.integer();
  agreed.own_event_payload_type = arguments.integer();
  agreed.ptime_ms = arguments.number();
  agreed.max_bitrate = arguments.number();
  agreed.send = arguments.boolean();
  agreed.receive = arguments.boolean();
  agreed.held = arguments.boolean();
  agreed.ringing = arguments.boolean();
  agreed.holding = arguments.boolean();
  agreed.learn_from = AddressRange::parse_list(arguments.text());
  agreed.first_sequence = arguments.integer();
  agreed.first_timestamp = arguments.number();
  const auto is_type = [](int32_t type) { return type >= -1 && type <= 127; };
  if (!arguments.ok() || codec > codec_max || payload_type > 127 || !is_type(agreed.event_payload_type) ||
      !is_type(agreed.own_payload_type) || !is_type(agreed.own_event_payload_type) ||
      (agreed.event_clock_hz != 8000 && agreed.event_clock_hz != opus_rate_hz) || agreed.ptime_ms < 10 ||
      agreed.ptime_ms > 60 || agreed.first_sequence < -1 || agreed.first_sequence > 0xffff) {
    return arguments.refuse();
  }
  SrtpKeys keys;
  const uint32_t suite = arguments.number();
  if (!read_keys(arguments, suite, keys)) return arguments.refuse();
  agreed.codec = static_cast<Codec>(codec);
  agreed.payload_type = static_cast<uint8_t>(payload_type);
  const bool found = plane->negotiate(id, agreed, now_of_system(), suite == 0 ? nullptr : &keys);
  ::explicit_bzero(&keys, sizeof keys);
  return arguments.give(found);
}

// legPlay(plane, leg, playback, rateHz, volumePercent) -> found
Napi::Value leg_play(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t playback = arguments.number();
  const uint32_t rate_hz = arguments.number();
  const uint32_t volume = arguments.number();
  if (!arguments.ok() || playback == 0 || rate_hz < 8000 || rate_hz > 48000 || volume > 200) return arguments.refuse();
  return arguments.give(plane->play(id, playback, rate_hz, static_cast<int32_t>(volume)));
}

// legFeed(plane, leg, playback, Int16Array pcm) -> taken
Napi::Value leg_feed(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t playback = arguments.number();
  size_t count = 0;
  const int16_t* pcm = arguments.span<int16_t>(count);
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->feed(id, playback, pcm, count));
}

// legKeys(plane, leg, number, keys, durationMs, gapMs) -> whether they will be sent
Napi::Value leg_keys(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t number = arguments.number();
  const std::string keys = arguments.text();
  const uint32_t duration_ms = arguments.number();
  const uint32_t gap_ms = arguments.number();
  const bool known = keys.find_first_not_of("0123456789*#ABCDwW") == std::string::npos;
  if (!arguments.ok() || !known || duration_ms < 20 || duration_ms > 1000 || gap_ms < 20 || gap_ms > 1000)
    return arguments.refuse();
  return arguments.give(plane->send_keys(id, number, keys, duration_ms, gap_ms));
}

// legAnswerer(plane, leg, timeoutMs) -> found
Napi::Value leg_answerer(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t timeout_ms = arguments.number();
  if (!arguments.ok() || timeout_ms > 60'000) return arguments.refuse();
  return arguments.give(plane->detect_answerer(id, timeout_ms));
}

constexpr Export exported[] = {
    {"legOpen", leg_open},
    {"legClose", leg_close},
    {"legCounters", leg_counters},
    {"legNegotiate", leg_negotiate},
    {"legPlay", leg_play},
    {"legFeed", leg_feed},
    {"legKeys", leg_keys},
    {"srtpSupports", srtp_supports_suite},
    {"legAnswerer", leg_answerer},
    {"legFinish", plane_call<&Plane::finish>},  // (plane, leg, playback) -> whether it was the playback
    {"legStop", plane_call<&Plane::stop>},      // (plane, leg, playback) -> whether it was the playback
    {"legPause", plane_call<&Plane::pause>},    // (plane, leg, playback, paused) -> whether it was the playback
    {"legSeek", plane_call<&Plane::seek>},      // (plane, leg, playback) -> whether it was the playback
    {"legPipe", plane_call<&Plane::pipe>},      // (plane, leg, ssrc, theirSsrc, atOnce) -> found
};

}  // namespace

Exports leg_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
