// Rooms, and the membership of legs in them.
#include "addon/exports.h"
#include "addon/plane_call.h"

namespace sidetone {
namespace {

// planeNumber(plane) -> its number for legMove
Napi::Value plane_number(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->number());
}

// legMove(plane, leg, number) -> false where there is no such leg or plane; else the other plane notices that it came
Napi::Value leg_move(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t number = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->move(id, number, now_of_system()));
}

// playVolume(plane, legOrRoom, percent) -> whether something plays there
Napi::Value play_volume(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t percent = arguments.number();
  if (!arguments.ok() || percent > 200) return arguments.refuse();
  return arguments.give(plane->play_volume(id, static_cast<int32_t>(percent)));
}

// legJoin(plane, leg, room, muted, fromPercent, toPercent) -> found
Napi::Value leg_join(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t room = arguments.number();
  const bool muted = arguments.boolean();
  const uint32_t from = arguments.number();
  const uint32_t to = arguments.number();
  if (!arguments.ok() || from > 200 || to > 200) return arguments.refuse();
  return arguments.give(plane->join(id, room, muted, static_cast<int32_t>(from), static_cast<int32_t>(to)));
}

// legVolume(plane, leg, from, percent) -> whether it is in a room; `from` is what it says, else what it hears
Napi::Value leg_volume(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const bool from = arguments.boolean();
  const uint32_t percent = arguments.number();
  if (!arguments.ok() || percent > 200) return arguments.refuse();
  return arguments.give(plane->volume(id, from, static_cast<int32_t>(percent)));
}

constexpr Export exported[] = {
    {"planeNumber", plane_number},
    {"legMove", leg_move},
    {"playVolume", play_volume},
    {"legJoin", leg_join},
    {"legVolume", leg_volume},
    {"roomOpen", plane_call<&Plane::open_room>},        // (plane, room) -> whether the number was free
    {"roomClose", plane_call<&Plane::close_room>},      // (plane, room) -> found
    {"roomVoices", plane_call<&Plane::detect_voices>},  // (plane, room, on) -> found
    {"legLeave", plane_call<&Plane::leave>},            // (plane, leg) -> whether it was in a room
    {"legDrop", plane_call<&Plane::drop>},              // (plane, leg) -> whether it was in a room; it leaves at once
    {"legMute", plane_call<&Plane::mute>},              // (plane, leg, muted) -> whether it is in a room
    {"legTones", plane_call<&Plane::detect_tones>},     // (plane, leg, on) -> found
    {"legCoach", plane_call<&Plane::coach>},            // (plane, leg, coached) -> whether the coach is in a room
    {"roomMusic", plane_call<&Plane::open_music>},  // (plane, room, music) -> false: no room, or the number is taken
};

}  // namespace

Exports room_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
