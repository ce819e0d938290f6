// Rooms, and the membership of legs in them.
#include "addon/call.h"

namespace sidetone {
namespace {

// planeNumber(plane) -> its number for legMove
napi_value plane_number(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  if (!call.ok()) return call.bad();
  return call.give(plane->number());
}

// legMove(plane, leg, number) -> false where there is no such leg or plane; else the other plane notices that it came
napi_value leg_move(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t number = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->move(id, number, Plane::now()));
}

// roomOpen(plane, room) -> whether the number was free
napi_value room_open(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->open_room(id));
}

// roomClose(plane, room) -> found
napi_value room_close(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->close_room(id));
}

// playVolume(plane, legOrRoom, percent) -> whether something plays there
napi_value play_volume(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t percent = call.number();
  if (!call.ok() || percent > 200) return call.bad();
  return call.give(plane->play_volume(id, static_cast<int32_t>(percent)));
}

// roomVoices(plane, room, on) -> found
napi_value room_voices(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const bool on = call.boolean();
  if (!call.ok()) return call.bad();
  return call.give(plane->detect_voices(id, on));
}

// legJoin(plane, leg, room, muted, fromPercent, toPercent) -> found
napi_value leg_join(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t room = call.number();
  const bool muted = call.boolean();
  const uint32_t from = call.number();
  const uint32_t to = call.number();
  if (!call.ok() || from > 200 || to > 200) return call.bad();
  return call.give(plane->join(id, room, muted, static_cast<int32_t>(from), static_cast<int32_t>(to)));
}

// legLeave(plane, leg) -> whether it was in a room
napi_value leg_leave(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->leave(id));
}

// legDrop(plane, leg) -> whether it was in a room; it leaves at once
napi_value leg_drop(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->drop(id));
}

// legTones(plane, leg, on) -> found
napi_value leg_tones(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const bool on = call.boolean();
  if (!call.ok()) return call.bad();
  return call.give(plane->detect_tones(id, on));
}

// legMute(plane, leg, muted) -> whether it is in a room
napi_value leg_mute(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const bool muted = call.boolean();
  if (!call.ok()) return call.bad();
  return call.give(plane->mute(id, muted));
}

// legVolume(plane, leg, from, percent) -> whether it is in a room; `from` is what it says, else what it hears
napi_value leg_volume(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const bool from = call.boolean();
  const uint32_t percent = call.number();
  if (!call.ok() || percent > 200) return call.bad();
  return call.give(plane->volume(id, from, static_cast<int32_t>(percent)));
}

constexpr Export exported[] = {
    {"planeNumber", plane_number}, {"legMove", leg_move}, {"roomOpen", room_open}, {"roomClose", room_close}, {"roomVoices", room_voices},
    {"playVolume", play_volume}, {"legJoin", leg_join},         {"legLeave", leg_leave}, {"legDrop", leg_drop}, {"legMute", leg_mute}, {"legTones", leg_tones}, {"legVolume", leg_volume},
};

}  // namespace

Exports room_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
