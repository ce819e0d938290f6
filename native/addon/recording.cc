// Recordings of legs and rooms.
#include "addon/call.h"

namespace sidetone {
namespace {

// record(plane, legOrRoom, recording, path, ring | '', rateHz | 0, includeGaps, voices, sensitivityPercent, onsetMs, releaseMs) -> found
napi_value record(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t of = call.number();
  RecorderOptions options;
  options.id = call.number();
  options.path = call.path();
  options.ring = call.path(true);
  options.rate_hz = call.number();
  options.include_gaps = call.boolean();
  options.voices = call.boolean();
  const uint32_t sensitivity = call.number();
  options.rule.onset_ms = call.number();
  options.rule.release_ms = call.number();
  if (!call.ok() || options.rate_hz > 48000 || sensitivity > 100) return call.bad();
  options.rule.sensitivity = static_cast<float>(sensitivity) / 100.0f;
  return call.give(plane->record(of, options));
}

// recordMask(plane, legOrRoom, recording, masked) -> found
napi_value record_mask(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t of = call.number();
  const uint32_t recording = call.number();
  const bool masked = call.boolean();
  if (!call.ok()) return call.bad();
  return call.give(plane->mask(of, recording, masked));
}

// recordStop(plane, legOrRoom, recording) -> found
napi_value record_stop(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t of = call.number();
  const uint32_t recording = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->stop_recording(of, recording));
}

// recordFollow(path, followed)
napi_value record_follow(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const std::string path = call.path();
  const bool followed = call.boolean();
  if (!call.ok()) return call.bad();
  RecordingFile::follow(path, followed);
  return nullptr;
}

constexpr Export exported[] = {{"record", record}, {"recordMask", record_mask}, {"recordStop", record_stop}, {"recordFollow", record_follow}};

}  // namespace

Exports recording_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
