// The module as Node-API loads it, once for each environment.
#include "addon/exports.h"

namespace sidetone {
namespace {

Napi::Object start(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Environment());  // freed with the environment
  for (const Exports& file : {plane_exports(), leg_exports(), room_exports(), recording_exports(), source_exports(),
                              stream_exports(), socket_exports(), webrtc_exports(), aac_exports(), mpeg_exports()}) {
    for (size_t i = 0; i < file.count; i++) {
      const Export& exported = file.first[i];
      exports.Set(exported.name, Napi::Function::New(env, exported.function, exported.name));
    }
  }
  return exports;
}

}  // namespace
}  // namespace sidetone

using sidetone::start;
NODE_API_MODULE(sidetone_media, start)
