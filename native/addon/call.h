// The arguments and results of one call from script. Script hands over numbers, strings and typed arrays, already validated there; here they are
// only guarded, so that a wrong call throws a TypeError and never crashes.
#pragma once
#include <node_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "plane/audio/converter.h"
#include "plane/plane.h"
#include "plane/priority.h"

namespace sidetone {

/** Every object that script holds begins with a number of its kind. */
struct Handle {
  uint32_t magic;
};

struct PlaneHandle : Handle {
  static constexpr uint32_t kind = 0x504c414e;
  std::unique_ptr<Plane> plane;
  Priority priority;  // of the thread that made it, which runs it too
};

/** What one environment owns: the same library serves the main thread and every worker at once, so a static would be shared by all. */
struct Environment {
  FilterBank filters;
};

/** The arguments of one call, each taken with its type checked; `bad()` throws and ends the call. */
class Call {
 public:
  static constexpr size_t most = 16;

  Call(napi_env env, napi_callback_info info) : env_(env) {
    ok_ = napi_get_cb_info(env, info, &count_, values_, nullptr, nullptr) == napi_ok;
  }

  bool ok() const { return ok_; }
  napi_value bad() const {
    napi_throw_type_error(env_, nullptr, "sidetone_media: bad argument");
    return nullptr;
  }

  uint32_t number() {
    double value = -1;
    if (!next() || napi_get_value_double(env_, values_[at_ - 1], &value) != napi_ok || !(value >= 0 && value <= 4294967295.0)) ok_ = false;
    return ok_ ? static_cast<uint32_t>(value) : 0;
  }

  int32_t integer() {
    int32_t value = 0;
    if (!next() || napi_get_value_int32(env_, values_[at_ - 1], &value) != napi_ok) ok_ = false;
    return value;
  }

  bool boolean() {
    bool value = false;
    if (!next() || napi_get_value_bool(env_, values_[at_ - 1], &value) != napi_ok) ok_ = false;
    return value;
  }

  /** An address literal fits; anything longer is cut and then fails to parse. */
  Address address(const char (&host)[64], uint32_t port) {
    Address address;
    if (ok_ && (port > 65535 || !address.parse(host, static_cast<uint16_t>(port)))) ok_ = false;
    return address;
  }

  void text(char (&out)[64]) {
    size_t length = 0;
    out[0] = 0;
    if (!next() || napi_get_value_string_utf8(env_, values_[at_ - 1], out, sizeof out, &length) != napi_ok) ok_ = false;
  }

  /** Text of at most `text_max` bytes. */
  std::string words() {
    std::string out(text_max + 1, 0);
    size_t length = 0;
    if (!next() || napi_get_value_string_utf8(env_, values_[at_ - 1], out.data(), out.size(), &length) != napi_ok || length >= text_max) ok_ = false;
    out.resize(ok_ ? length : 0);
    return out;
  }
  static constexpr size_t text_max = 8192;

  /** A path: at most `path_max` bytes, without a NUL, and not empty unless that means none. */
  std::string path(bool or_none = false) {
    char out[path_max + 2];
    size_t length = 0;
    if (!next() || napi_get_value_string_utf8(env_, values_[at_ - 1], out, sizeof out, &length) != napi_ok || (length == 0 && !or_none) || length > path_max ||
        std::strlen(out) != length) {
      ok_ = false;
      return std::string();
    }
    return std::string(out, length);
  }
  static constexpr size_t path_max = 1024;

  template <typename T>
  T* span(napi_typedarray_type wanted, size_t& count) {
    napi_typedarray_type type;
    void* data = nullptr;
    count = 0;
    if (!next() || napi_get_typedarray_info(env_, values_[at_ - 1], &type, &count, &data, nullptr, nullptr) != napi_ok || type != wanted ||
        (data == nullptr && count > 0)) {
      ok_ = false;
      count = 0;
      return nullptr;
    }
    return static_cast<T*>(data);
  }

  template <typename T>
  T* handle() {
    void* data = nullptr;
    if (!next() || napi_get_value_external(env_, values_[at_ - 1], &data) != napi_ok || data == nullptr ||
        static_cast<Handle*>(data)->magic != T::kind) {
      ok_ = false;
      return nullptr;
    }
    return static_cast<T*>(data);
  }

  Plane* plane() {
    PlaneHandle* found = handle<PlaneHandle>();
    if (found == nullptr || !found->plane) ok_ = false;
    return ok_ ? found->plane.get() : nullptr;
  }

  napi_value give(uint32_t value) const {
    napi_value out = nullptr;
    napi_create_uint32(env_, value, &out);
    return out;
  }

  napi_value give(bool value) const {
    napi_value out = nullptr;
    napi_get_boolean(env_, value, &out);
    return out;
  }

 private:
  bool next() {
    if (!ok_ || at_ >= count_ || at_ >= most) return false;
    at_++;
    return true;
  }

  napi_env env_;
  size_t count_ = most;
  napi_value values_[most] = {};
  size_t at_ = 0;
  bool ok_ = true;
};

/** Gives an object to script, which frees it when it forgets it. */
template <typename T>
napi_value wrap(napi_env env, std::unique_ptr<T> handle) {
  handle->magic = T::kind;
  napi_value out = nullptr;
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<T*>(data); };
  if (napi_create_external(env, handle.get(), finalize, nullptr, &out) != napi_ok) return nullptr;
  (void)handle.release();
  return out;
}

inline Environment* environment(napi_env env) {
  void* data = nullptr;
  return napi_get_instance_data(env, &data) == napi_ok ? static_cast<Environment*>(data) : nullptr;
}

struct Export {
  const char* name;
  napi_callback function;
};

/** The functions of one file, by the names script calls them. */
struct Exports {
  const Export* first;
  size_t count;
};

Exports plane_exports();
Exports leg_exports();
Exports recording_exports();
Exports room_exports();
Exports source_exports();
Exports stream_exports();

}  // namespace sidetone
