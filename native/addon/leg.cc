// The legs of a plane.
#include "addon/call.h"

namespace sidetone {
namespace {

constexpr size_t counter_words = 8;

void write_counters(const Counters& counters, uint32_t* out) {
  out[0] = counters.received;
  out[1] = counters.sent;
  out[2] = static_cast<uint32_t>(counters.lost);
  out[3] = counters.late;
  out[4] = counters.jitter_us;
  out[5] = counters.delay_us;
  out[6] = counters.round_trip_us;
  out[7] = counters.mos_milli;
}

// legOpen(plane, leg, host, port) -> errno
napi_value leg_open(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  char host[64];
  call.text(host);
  const uint32_t port = call.number();
  const Address rtp = call.address(host, port);
  const Address rtcp = call.address(host, port + 1);
  if (!call.ok()) return call.bad();
  return call.give(static_cast<uint32_t>(plane->open(id, rtp, rtcp)));
}

// legClose(plane, leg, Uint32Array[8] counters) -> whether there was such a leg
napi_value leg_close(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  size_t words = 0;
  uint32_t* out = call.span<uint32_t>(napi_uint32_array, words);
  if (!call.ok() || words < counter_words) return call.bad();
  Counters counters;
  const bool found = plane->close(id, counters, Plane::now());
  write_counters(counters, out);
  return call.give(found);
}

// legCounters(plane, leg, Uint32Array[8] counters) -> whether there is such a leg
napi_value leg_counters(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  size_t words = 0;
  uint32_t* out = call.span<uint32_t>(napi_uint32_array, words);
  if (!call.ok() || words < counter_words) return call.bad();
  Counters counters;
  const bool found = plane->counters(id, counters);
  write_counters(counters, out);
  return call.give(found);
}

// legNegotiate(plane, leg, remoteHost, rtpPort, rtcpPort, codec, payloadType, eventPayloadType | -1, ptimeMs, send, receive, held, learnFrom) -> found
napi_value leg_negotiate(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  char host[64];
  call.text(host);
  Negotiated agreed;
  agreed.rtp = call.address(host, call.number());
  agreed.rtcp = call.address(host, call.number());
  const uint32_t codec = call.number();
  const uint32_t payload_type = call.number();
  agreed.event_payload_type = call.integer();
  agreed.ptime_ms = call.number();
  agreed.send = call.boolean();
  agreed.receive = call.boolean();
  agreed.held = call.boolean();
  agreed.learn_from = AddressRange::parse_list(call.words());
  if (!call.ok() || codec > 2 || payload_type > 127 || agreed.event_payload_type < -1 || agreed.event_payload_type > 127 ||
      agreed.ptime_ms < 10 || agreed.ptime_ms > 60) {
    return call.bad();
  }
  agreed.codec = static_cast<Codec>(codec);
  agreed.payload_type = static_cast<uint8_t>(payload_type);
  return call.give(plane->negotiate(id, agreed, Plane::now()));
}

// legPlay(plane, leg, playback, rateHz, volumePercent) -> found
napi_value leg_play(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t playback = call.number();
  const uint32_t rate_hz = call.number();
  const uint32_t volume = call.number();
  if (!call.ok() || playback == 0 || rate_hz < 8000 || rate_hz > 48000 || volume > 200) return call.bad();
  return call.give(plane->play(id, playback, rate_hz, static_cast<int32_t>(volume)));
}

// legFeed(plane, leg, playback, Int16Array pcm) -> taken
napi_value leg_feed(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t playback = call.number();
  size_t count = 0;
  const int16_t* pcm = call.span<int16_t>(napi_int16_array, count);
  if (!call.ok()) return call.bad();
  return call.give(plane->feed(id, playback, pcm, count));
}

// legFinish(plane, leg, playback) -> whether it was the playback
napi_value leg_finish(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t playback = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->finish(id, playback));
}

// legStop(plane, leg, playback) -> whether it was the playback
napi_value leg_stop(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t playback = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->stop(id, playback));
}

// legPause(plane, leg, playback, paused) -> whether it was the playback
napi_value leg_pause(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t playback = call.number();
  const bool paused = call.boolean();
  if (!call.ok()) return call.bad();
  return call.give(plane->pause(id, playback, paused));
}

// legSeek(plane, leg, playback) -> whether it was the playback
napi_value leg_seek(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t playback = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->seek(id, playback));
}

constexpr Export exported[] = {
    {"legOpen", leg_open},
    {"legClose", leg_close},
    {"legCounters", leg_counters},
    {"legNegotiate", leg_negotiate},
    {"legPlay", leg_play},
    {"legFeed", leg_feed},
    {"legFinish", leg_finish},
    {"legStop", leg_stop},
    {"legPause", leg_pause},
    {"legSeek", leg_seek},
};

}  // namespace

Exports leg_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
