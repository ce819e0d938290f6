// Recordings of legs and rooms.
#include "addon/exports.h"
#include "addon/plane_call.h"

namespace sidetone {
namespace {

// record(plane, legOrRoom, recording, path, ring | '', rateHz | 0, includeGaps, voices, sensitivityPercent, onsetMs,
// releaseMs) -> found
Napi::Value record(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t of = arguments.number();
  RecorderOptions options;
  options.id = arguments.number();
  options.path = arguments.path();
  options.ring = arguments.path(true);
  options.rate_hz = arguments.number();
  options.include_gaps = arguments.boolean();
  options.voices = arguments.boolean();
  const uint32_t sensitivity = arguments.number();
  options.rule.onset_ms = arguments.number();
  options.rule.release_ms = arguments.number();
  if (!arguments.ok() || options.rate_hz > 48000 || sensitivity > 100) return arguments.refuse();
  options.rule.sensitivity = static_cast<float>(sensitivity) / 100.0f;
  return arguments.give(plane->record(of, options));
}

// recordFollow(path, followed)
Napi::Value record_follow(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::string path = arguments.path();
  const bool followed = arguments.boolean();
  if (!arguments.ok()) return arguments.refuse();
  RecordingFile::follow(path, followed);
  return info.Env().Undefined();
}

constexpr Export exported[] = {
    {"record", record},
    {"recordFollow", record_follow},
    {"recordMask", plane_call<&Plane::mask>},            // (plane, legOrRoom, recording, masked) -> found
    {"recordStop", plane_call<&Plane::stop_recording>},  // (plane, legOrRoom, recording) -> found
};

}  // namespace

Exports recording_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
