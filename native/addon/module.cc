// The module as Node-API loads it, once for each environment.
#include "addon/call.h"

using namespace sidetone;

NAPI_MODULE_INIT() {
  auto state = std::make_unique<Environment>();
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<Environment*>(data); };
  if (napi_set_instance_data(env, state.get(), finalize, nullptr) != napi_ok) return nullptr;
  (void)state.release();
  for (const Exports& file : {plane_exports(), leg_exports(), room_exports(), recording_exports(), source_exports(), stream_exports()}) {
    for (size_t i = 0; i < file.count; i++) {
      napi_value function = nullptr;
      if (napi_create_function(env, file.first[i].name, NAPI_AUTO_LENGTH, file.first[i].function, nullptr, &function) != napi_ok ||
          napi_set_named_property(env, exports, file.first[i].name, function) != napi_ok) {
        return nullptr;
      }
    }
  }
  return exports;
}
