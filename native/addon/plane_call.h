// Functions of script that hand their arguments to a method of a plane as they are.
#pragma once
#include <tuple>
#include <type_traits>

#include "addon/arguments.h"

namespace sidetone {

template <typename T>
T next_of(Arguments& arguments) {
  static_assert(std::is_same_v<T, bool> || std::is_same_v<T, uint32_t>, "others have limits to be checked");
  if constexpr (std::is_same_v<T, bool>) {
    return arguments.boolean();
  } else {
    return arguments.number();
  }
}

template <typename... Values>
Napi::Value call_plane(const Napi::CallbackInfo& info, bool (Plane::*method)(Values...)) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const std::tuple<Values...> values{next_of<Values>(arguments)...};  // braces read them from left to right
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(std::apply([&](Values... each) { return (plane->*method)(each...); }, values));
}

/** The function (plane, ...) of script that calls `method` with the numbers and booleans after the plane, which need no
 * check but that of their type, and gives back its result. */
template <auto method>
Napi::Value plane_call(const Napi::CallbackInfo& info) {
  return call_plane(info, method);
}

}  // namespace sidetone
