// The functions that script calls, each named in the file that defines it.
#pragma once
#include <napi.h>

#include <cstddef>

#include "addon/arguments.h"
#include "addon/handle.h"

namespace sidetone {

struct Export {
  const char* name;
  Napi::Value (*function)(const Napi::CallbackInfo&);
};

/** The functions of one file, by the names that script calls them. */
struct Exports {
  const Export* first;
  size_t count;
};

Exports aac_exports();
Exports mpeg_exports();
Exports plane_exports();
Exports leg_exports();
Exports recording_exports();
Exports room_exports();
Exports socket_exports();
Exports source_exports();
Exports stream_exports();
Exports webrtc_exports();

}  // namespace sidetone
