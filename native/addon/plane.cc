// A media plane: made, run tick by tick, woken from other threads.
#include <errno.h>
#include <unistd.h>

#include <cstring>

#include "addon/exports.h"

namespace sidetone {
namespace {

/** Ends the plane of an environment that is torn down. A worker that is lost collects nothing, and would keep its ports
 * for ever. */
void end_plane(void* handle) { static_cast<PlaneHandle*>(handle)->plane.reset(); }

// planeCreate(mediaTimeoutMs) -> plane
Napi::Value plane_create(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t timeout_ms = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  int error = 0;
  auto handle = std::make_unique<PlaneHandle>();
  handle->plane = Plane::create(static_cast<int64_t>(timeout_ms) * 1000, error);
  if (!handle->plane) {
    Napi::Error::New(info.Env(), std::strerror(error)).ThrowAsJavaScriptException();
    return info.Env().Undefined();
  }
  (void)handle->priority.raise();
  if (const auto box = Handover::find(handle->plane->number())) box->run_by(::gettid());
  handle->env = info.Env();
  handle->at_teardown = end_plane;
  (void)napi_add_env_cleanup_hook(info.Env(), end_plane, handle.get());
  return wrap(info.Env(), std::move(handle));
}

// planeDestroy(plane)
Napi::Value plane_destroy(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  PlaneHandle* handle = arguments.handle<PlaneHandle>();
  if (!arguments.ok()) return arguments.refuse();
  handle->plane.reset();
  handle->priority.lower();
  return info.Env().Undefined();
}

// wake(number) -> whether there is such a plane: from any thread, ends its sleep. A number is given out once, as a
// descriptor is not: that of a plane which has just ended may be any other file's.
Napi::Value wake(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<Handover> box = Handover::find(arguments.number());
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(box != nullptr && box->wake());
}

// planeGiveUp(number) -> whether the thread of that plane, which hangs, now has the lowest priority
Napi::Value plane_give_up(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const std::shared_ptr<Handover> box = Handover::find(arguments.number());
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(box != nullptr && box->give_up());
}

// planePriority(plane) -> 0 ordinary, 1 nicer, 2 real-time
Napi::Value plane_priority(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const PlaneHandle* handle = arguments.handle<PlaneHandle>();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(static_cast<uint32_t>(handle->priority.level()));
}

// planeRun(plane, Uint32Array notices) -> count. Words 0 to 7: ticks, skipped, lateness us, busy us, legs, 0, 0, 0;
// then eight a notice.
Napi::Value plane_run(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  PlaneHandle* handle = arguments.handle<PlaneHandle>();
  Plane* plane = handle != nullptr ? handle->plane.get() : nullptr;
  size_t words = 0;
  uint32_t* out = arguments.span<uint32_t>(words);
  if (!arguments.ok() || plane == nullptr || words < 16) return arguments.refuse();
  const TickReport report = plane->run();
  if (report.ticks > 0 || report.busy_us > 0)
    handle->priority.spent(report.busy_us, report.skipped, now_of_system().us);
  out[0] = report.ticks;
  out[1] = report.skipped;
  out[2] = static_cast<uint32_t>(report.lateness_us > 0xffffffffLL ? 0xffffffffLL : report.lateness_us);
  out[3] = static_cast<uint32_t>(report.busy_us > 0xffffffffLL ? 0xffffffffLL : report.busy_us);
  out[4] = static_cast<uint32_t>(plane->legs());
  return arguments.give(static_cast<uint32_t>(plane->take_notices(reinterpret_cast<Notice*>(out + 8), words / 8 - 1)));
}

// planeNotices(plane, Uint32Array notices) -> count: those that did not fit, laid out as above
Napi::Value plane_notices(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  size_t words = 0;
  uint32_t* out = arguments.span<uint32_t>(words);
  if (!arguments.ok() || words < 16) return arguments.refuse();
  return arguments.give(static_cast<uint32_t>(plane->take_notices(reinterpret_cast<Notice*>(out + 8), words / 8 - 1)));
}

constexpr Export exported[] = {
    {"planeCreate", plane_create},  {"planeDestroy", plane_destroy},   {"wake", wake},
    {"planeRun", plane_run},        {"planePriority", plane_priority}, {"planeNotices", plane_notices},
    {"planeGiveUp", plane_give_up},
};

}  // namespace

Exports plane_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
