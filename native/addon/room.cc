// Rooms, and the membership of legs in them.
#include "addon/exports.h"

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

// roomOpen(plane, room) -> whether the number was free
Napi::Value room_open(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->open_room(id));
}

// roomClose(plane, room) -> found
Napi::Value room_close(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->close_room(id));
}

// roomMusic(plane, room, music) -> whether there is such a room and the number was free
Napi::Value room_music(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t music = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->open_music(id, music));
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

// roomVoices(plane, room, on) -> found
Napi::Value room_voices(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const bool on = arguments.boolean();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->detect_voices(id, on));
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

// legCoach(plane, leg, coached) -> whether the coach is in a room
Napi::Value leg_coach(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t coached = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->coach(id, coached));
}

// legLeave(plane, leg) -> whether it was in a room
Napi::Value leg_leave(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->leave(id));
}

// legDrop(plane, leg) -> whether it was in a room; it leaves at once
Napi::Value leg_drop(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->drop(id));
}

// legTones(plane, leg, on) -> found
Napi::Value leg_tones(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const bool on = arguments.boolean();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->detect_tones(id, on));
}

// legMute(plane, leg, muted) -> whether it is in a room
Napi::Value leg_mute(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const bool muted = arguments.boolean();
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(plane->mute(id, muted));
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
    {"planeNumber", plane_number}, {"legMove", leg_move},       {"roomOpen", room_open}, {"roomClose", room_close},
    {"roomVoices", room_voices},   {"playVolume", play_volume}, {"legJoin", leg_join},   {"legLeave", leg_leave},
    {"legDrop", leg_drop},         {"legMute", leg_mute},       {"legTones", leg_tones}, {"legVolume", leg_volume},
    {"legCoach", leg_coach},       {"roomMusic", room_music},
};

}  // namespace

Exports room_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
