// The objects that script holds as externals, and what one environment owns. The library is loaded once for the main
// thread and all workers, so nothing of an environment may lie in a C++ static.
#pragma once
#include <napi.h>

#include <cstdint>
#include <memory>

#include "plane/audio/converter.h"
#include "plane/plane.h"
#include "plane/priority.h"

namespace sidetone {

/** Every object that script holds begins with a number of its kind, since any external can be handed to any function.
 */
struct Handle {
  uint32_t magic;
};

struct PlaneHandle : Handle {
  static constexpr uint32_t kind = 0x504c414e;
  std::unique_ptr<Plane> plane;  // none once script destroyed it
  Priority priority;             // of the thread that made the plane, which runs it too
  napi_env env = nullptr;
  void (*at_teardown)(void*) = nullptr;  // what the environment calls with this object at its end

  PlaneHandle() = default;
  PlaneHandle(const PlaneHandle&) = delete;
  PlaneHandle& operator=(const PlaneHandle&) = delete;
  ~PlaneHandle() {
    if (at_teardown != nullptr) (void)napi_remove_env_cleanup_hook(env, at_teardown, this);
  }
};

/** The state of one environment (`napi_set_instance_data`). */
struct Environment {
  FilterBank filters;
};

/** Gives an object to script, which frees it when it is collected. */
template <typename T>
Napi::Value wrap(Napi::Env env, std::unique_ptr<T> handle) {
  handle->magic = T::kind;
  const auto external =
      Napi::External<Handle>::New(env, handle.get(), [](Napi::Env, Handle* data) { delete static_cast<T*>(data); });
  if (!env.IsExceptionPending()) (void)handle.release();
  return external;
}

}  // namespace sidetone
