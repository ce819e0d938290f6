// A media plane: made, run tick by tick, woken from other threads.
#include <errno.h>
#include <unistd.h>

#include <cstring>

#include "addon/call.h"

namespace sidetone {
namespace {

// planeCreate(mediaTimeoutMs) -> plane
napi_value plane_create(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const uint32_t timeout_ms = call.number();
  if (!call.ok()) return call.bad();
  int error = 0;
  auto handle = std::make_unique<PlaneHandle>();
  handle->plane = Plane::create(static_cast<int64_t>(timeout_ms) * 1000, error);
  if (!handle->plane) {
    napi_throw_error(env, nullptr, std::strerror(error));
    return nullptr;
  }
  (void)handle->priority.raise();
  return wrap(env, std::move(handle));
}

// planeDestroy(plane)
napi_value plane_destroy(napi_env env, napi_callback_info info) {
  Call call(env, info);
  PlaneHandle* handle = call.handle<PlaneHandle>();
  if (!call.ok()) return call.bad();
  handle->plane.reset();
  handle->priority.lower();
  return nullptr;
}

// planeWakeFd(plane) -> fd
napi_value plane_wake_fd(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  if (!call.ok()) return call.bad();
  return call.give(static_cast<uint32_t>(plane->wake_fd()));
}

// wake(fd): from any thread, ends the sleep of the plane that owns it
napi_value wake(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const uint32_t fd = call.number();
  if (!call.ok() || fd > 0x7fffffff) return call.bad();
  const uint64_t one = 1;
  return call.give(::write(static_cast<int>(fd), &one, sizeof one) == static_cast<ssize_t>(sizeof one));
}

// planePriority(plane) -> 0 ordinary, 1 nicer, 2 real-time
napi_value plane_priority(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const PlaneHandle* handle = call.handle<PlaneHandle>();
  if (!call.ok()) return call.bad();
  return call.give(static_cast<uint32_t>(handle->priority.level()));
}

// planeRun(plane, Uint32Array notices) -> count. Words 0 to 7: ticks, skipped, lateness us, busy us, legs, 0, 0, 0; then eight a notice.
napi_value plane_run(napi_env env, napi_callback_info info) {
  Call call(env, info);
  PlaneHandle* handle = call.handle<PlaneHandle>();
  Plane* plane = handle != nullptr ? handle->plane.get() : nullptr;
  size_t words = 0;
  uint32_t* out = call.span<uint32_t>(napi_uint32_array, words);
  if (!call.ok() || plane == nullptr || words < 16) return call.bad();
  const TickReport report = plane->run();
  if (report.ticks > 0) handle->priority.spent(report.busy_us, report.skipped, Plane::now().us);
  out[0] = report.ticks;
  out[1] = report.skipped;
  out[2] = static_cast<uint32_t>(report.lateness_us > 0xffffffffLL ? 0xffffffffLL : report.lateness_us);
  out[3] = static_cast<uint32_t>(report.busy_us > 0xffffffffLL ? 0xffffffffLL : report.busy_us);
  out[4] = static_cast<uint32_t>(plane->legs());
  return call.give(static_cast<uint32_t>(plane->take_notices(reinterpret_cast<Notice*>(out + 8), words / 8 - 1)));
}

// planeNotices(plane, Uint32Array notices) -> count: those that did not fit, laid out as above
napi_value plane_notices(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  size_t words = 0;
  uint32_t* out = call.span<uint32_t>(napi_uint32_array, words);
  if (!call.ok() || words < 16) return call.bad();
  return call.give(static_cast<uint32_t>(plane->take_notices(reinterpret_cast<Notice*>(out + 8), words / 8 - 1)));
}

constexpr Export exported[] = {
    {"planeCreate", plane_create},
    {"planeDestroy", plane_destroy},
    {"planeWakeFd", plane_wake_fd},
    {"wake", wake},
    {"planeRun", plane_run},
    {"planePriority", plane_priority},
    {"planeNotices", plane_notices},
};

}  // namespace

Exports plane_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
