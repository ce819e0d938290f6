// The arguments and results of one call from script. Script hands over numbers, strings and typed arrays that it has
// validated; here they are guarded, so that a wrong call throws a TypeError and never crashes. No C++ exception
// crosses: the addon is built without them.
#pragma once
#include <napi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "addon/handle.h"
#include "plane/io/address.h"

namespace sidetone {

/** Reads the arguments of one call in order, each with its type checked. After the first wrong one `ok()` is false and
 * every value is a zero. */
class Arguments {
 public:
  explicit Arguments(const Napi::CallbackInfo& info) : info_(info) {}

  bool ok() const { return ok_; }

  /** Throws a TypeError into script; the result ends the call. */
  Napi::Value refuse() const {
    Napi::TypeError::New(info_.Env(), "sidetone_media: bad argument").ThrowAsJavaScriptException();
    return info_.Env().Undefined();
  }

  /** A number from 0 to 2^32 - 1; its fraction is cut off. */
  uint32_t number() {
    const Napi::Value value = next();
    const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
    ok_ = ok_ && number >= 0 && number <= 4294967295.0;
    return ok_ ? static_cast<uint32_t>(number) : 0;
  }

  /** A number of 32 bits with a sign. */
  int32_t integer() {
    const Napi::Value value = next();
    ok_ = ok_ && value.IsNumber();
    return ok_ ? value.As<Napi::Number>().Int32Value() : 0;
  }

  bool boolean() {
    const Napi::Value value = next();
    ok_ = ok_ && value.IsBoolean();
    return ok_ && value.As<Napi::Boolean>().Value();
  }

  /** Text of at most `most` bytes in UTF-8, without a NUL. */
  std::string text(size_t most = text_max_bytes) {
    const Napi::Value value = next();
    std::string text = value.IsString() ? value.As<Napi::String>().Utf8Value() : std::string();
    ok_ = ok_ && value.IsString() && text.size() <= most && text.find('\0') == std::string::npos;
    return ok_ ? text : std::string();
  }

  /** A path of 1 to `path_max_bytes` bytes; with `or_none` also the empty one. */
  std::string path(bool or_none = false) {
    std::string path = text(path_max_bytes);
    ok_ = ok_ && (or_none || !path.empty());
    return path;
  }

  /** A literal IP address, to be given to `address`. */
  std::string host() { return text(host_max_bytes); }

  /** The address of a literal host and a port. Anything else makes the call wrong. */
  Address address(const std::string& host, uint32_t port) {
    Address address;
    ok_ = ok_ && port <= 65535 && address.parse(host.c_str(), static_cast<uint16_t>(port));
    return address;
  }

  /** The elements of a typed array of T, which stay script's; `count` becomes their number. */
  template <typename T>
  T* span(size_t& count) {
    count = 0;
    const Napi::Value value = next();
    ok_ = ok_ && value.IsTypedArray() &&
          value.As<Napi::TypedArray>().TypedArrayType() == element_type(static_cast<const T*>(nullptr));
    if (!ok_) return nullptr;
    auto array = value.As<Napi::TypedArrayOf<T>>();
    count = array.ElementLength();
    return array.Data();
  }

  /** An object of ours that script holds. */
  template <typename T>
  T* handle() {
    const Napi::Value value = next();
    Handle* handle = ok_ && value.IsExternal() ? value.As<Napi::External<Handle>>().Data() : nullptr;
    ok_ = ok_ && handle != nullptr && handle->magic == T::kind;
    return ok_ ? static_cast<T*>(handle) : nullptr;
  }

  /** A plane that was not destroyed. */
  Plane* plane() {
    PlaneHandle* found = handle<PlaneHandle>();
    ok_ = ok_ && found->plane != nullptr;
    return ok_ ? found->plane.get() : nullptr;
  }

  Napi::Value give(uint32_t value) const { return Napi::Number::New(info_.Env(), value); }
  Napi::Value give(bool value) const { return Napi::Boolean::New(info_.Env(), value); }

  static constexpr size_t text_max_bytes = 8192;
  static constexpr size_t path_max_bytes = 1024;
  static constexpr size_t host_max_bytes = 63;

 private:
  static napi_typedarray_type element_type(const uint8_t*) { return napi_uint8_array; }
  static napi_typedarray_type element_type(const int16_t*) { return napi_int16_array; }
  static napi_typedarray_type element_type(const uint32_t*) { return napi_uint32_array; }
  static napi_typedarray_type element_type(const float*) { return napi_float32_array; }

  /** The next argument; undefined beyond the last one. */
  Napi::Value next() { return info_[at_++]; }

  const Napi::CallbackInfo& info_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace sidetone
