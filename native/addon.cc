// The Node-API face of the media plane, and the only file that knows Node-API. Script hands over numbers, strings and typed arrays, already
// validated there; here they are only guarded, so that a wrong call throws a TypeError and never crashes. All state hangs on the
// environment that made it: the same library serves the main thread and every worker at once.
#include <node_api.h>
#include <errno.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "kernel/wav.h"
#include "plane/converter.h"
#include "plane/plane.h"

using namespace sidetone;

namespace {

constexpr uint32_t magic_plane = 0x504c414e;
constexpr uint32_t magic_wav = 0x57415652;
constexpr uint32_t magic_pcm = 0x50434d43;

struct Handle {
  uint32_t magic;
};

struct PlaneHandle : Handle {
  std::unique_ptr<Plane> plane;
};

struct WavHandle : Handle {
  WavReader reader;
  std::unique_ptr<Converter> converter;
  uint32_t out_hz = 8000;
};

struct PcmHandle : Handle {
  std::unique_ptr<Converter> converter;
};

struct Environment {
  FilterBank filters;
};

/** The arguments of one call, each taken with its type checked; `bad()` throws and ends the call. */
class Call {
 public:
  static constexpr size_t most = 12;

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
  T* handle(uint32_t magic) {
    void* data = nullptr;
    if (!next() || napi_get_value_external(env_, values_[at_ - 1], &data) != napi_ok || data == nullptr ||
        static_cast<Handle*>(data)->magic != magic) {
      ok_ = false;
      return nullptr;
    }
    return static_cast<T*>(data);
  }

  Plane* plane() {
    PlaneHandle* found = handle<PlaneHandle>(magic_plane);
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

template <typename T>
napi_value wrap(napi_env env, std::unique_ptr<T> handle) {
  napi_value out = nullptr;
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<T*>(data); };
  if (napi_create_external(env, handle.get(), finalize, nullptr, &out) != napi_ok) return nullptr;
  (void)handle.release();
  return out;
}

Environment* environment(napi_env env) {
  void* data = nullptr;
  return napi_get_instance_data(env, &data) == napi_ok ? static_cast<Environment*>(data) : nullptr;
}

void write_counters(const Counters& counters, uint32_t* out) {
  out[0] = counters.received;
  out[1] = counters.sent;
  out[2] = static_cast<uint32_t>(counters.lost);
  out[3] = counters.jitter_us;
}

// planeCreate(mediaTimeoutMs) -> plane
napi_value plane_create(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const uint32_t timeout_ms = call.number();
  if (!call.ok()) return call.bad();
  int error = 0;
  auto handle = std::make_unique<PlaneHandle>();
  handle->magic = magic_plane;
  handle->plane = Plane::create(static_cast<int64_t>(timeout_ms) * 1000, error);
  if (!handle->plane) {
    napi_throw_error(env, nullptr, std::strerror(error));
    return nullptr;
  }
  return wrap(env, std::move(handle));
}

// planeDestroy(plane)
napi_value plane_destroy(napi_env env, napi_callback_info info) {
  Call call(env, info);
  PlaneHandle* handle = call.handle<PlaneHandle>(magic_plane);
  if (!call.ok()) return call.bad();
  handle->plane.reset();
  return nullptr;
}

// planeWakeFd(plane) -> fd
napi_value plane_wake_fd(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  if (!call.ok()) return call.bad();
  return call.give(static_cast<uint32_t>(plane->wake_fd()));
}

// wake(fd): from any thread, ends the sleep of the plane that owns it
napi_value wake(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const uint32_t fd = call.number();
  if (!call.ok() || fd > 0x7fffffff) return call.bad();
  const uint64_t one = 1;
  return call.give(::write(static_cast<int>(fd), &one, sizeof one) == static_cast<ssize_t>(sizeof one));
}

// planeRun(plane, Uint32Array notices) -> count. Words 0 to 7: ticks, skipped, lateness us, busy us, legs, 0, 0, 0; then eight a notice.
napi_value plane_run(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  size_t words = 0;
  uint32_t* out = call.span<uint32_t>(napi_uint32_array, words);
  if (!call.ok() || words < 16) return call.bad();
  const TickReport report = plane->run();
  out[0] = report.ticks;
  out[1] = report.skipped;
  out[2] = static_cast<uint32_t>(report.lateness_us > 0xffffffffLL ? 0xffffffffLL : report.lateness_us);
  out[3] = static_cast<uint32_t>(report.busy_us > 0xffffffffLL ? 0xffffffffLL : report.busy_us);
  out[4] = static_cast<uint32_t>(plane->legs());
  return call.give(static_cast<uint32_t>(plane->take_notices(reinterpret_cast<Notice*>(out + 8), words / 8 - 1)));
}

// planeNotices(plane, Uint32Array notices) -> count: those that did not fit, laid out as above
napi_value plane_notices(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  size_t words = 0;
  uint32_t* out = call.span<uint32_t>(napi_uint32_array, words);
  if (!call.ok() || words < 16) return call.bad();
  return call.give(static_cast<uint32_t>(plane->take_notices(reinterpret_cast<Notice*>(out + 8), words / 8 - 1)));
}

// legOpen(plane, leg, host, port) -> errno
napi_value leg_open(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  char host[64];
  call.text(host);
  const uint32_t port = call.number();
  const Address rtp = call.address(host, port);
  const Address rtcp = call.address(host, port + 1);
  if (!call.ok()) return call.bad();
  return call.give(static_cast<uint32_t>(plane->open(id, rtp, rtcp)));
}

// legClose(plane, leg, Uint32Array[4] counters) -> whether there was such a leg
napi_value leg_close(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  size_t words = 0;
  uint32_t* out = call.span<uint32_t>(napi_uint32_array, words);
  if (!call.ok() || words < 4) return call.bad();
  Counters counters;
  const bool found = plane->close(id, counters);
  write_counters(counters, out);
  return call.give(found);
}

// legCounters(plane, leg, Uint32Array[4] counters) -> whether there is such a leg
napi_value leg_counters(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  size_t words = 0;
  uint32_t* out = call.span<uint32_t>(napi_uint32_array, words);
  if (!call.ok() || words < 4) return call.bad();
  Counters counters;
  const bool found = plane->counters(id, counters);
  write_counters(counters, out);
  return call.give(found);
}

// legNegotiate(plane, leg, remoteHost, rtpPort, rtcpPort, codec, payloadType, eventPayloadType | -1, ptimeMs, send, receive) -> found
napi_value leg_negotiate(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  char host[64];
  call.text(host);
  Negotiated agreed;
  agreed.rtp = call.address(host, call.number());
  agreed.rtcp = call.address(host, call.number());
  const uint32_t codec = call.number();
  const uint32_t payload_type = call.number();
  agreed.event_payload_type = call.integer();
  agreed.ptime_ms = call.number();
  agreed.send = call.boolean();
  agreed.receive = call.boolean();
  if (!call.ok() || codec > 2 || payload_type > 127 || agreed.event_payload_type < -1 || agreed.event_payload_type > 127 ||
      agreed.ptime_ms < 10 || agreed.ptime_ms > 60) {
    return call.bad();
  }
  agreed.codec = static_cast<Codec>(codec);
  agreed.payload_type = static_cast<uint8_t>(payload_type);
  return call.give(plane->negotiate(id, agreed));
}

// legPlay(plane, leg, playback, rateHz, volumePercent) -> found
napi_value leg_play(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t playback = call.number();
  const uint32_t rate_hz = call.number();
  const uint32_t volume = call.number();
  if (!call.ok() || playback == 0 || rate_hz < 8000 || rate_hz > 48000 || volume > 200) return call.bad();
  return call.give(plane->play(id, playback, rate_hz, static_cast<int32_t>(volume)));
}

// legFeed(plane, leg, playback, Int16Array pcm) -> taken
napi_value leg_feed(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t playback = call.number();
  size_t count = 0;
  const int16_t* pcm = call.span<int16_t>(napi_int16_array, count);
  if (!call.ok()) return call.bad();
  return call.give(plane->feed(id, playback, pcm, count));
}

// legFinish(plane, leg, playback) -> whether it was the playback
napi_value leg_finish(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t playback = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->finish(id, playback));
}

// legStop(plane, leg, playback) -> whether it was the playback
napi_value leg_stop(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t playback = call.number();
  if (!call.ok()) return call.bad();
  return call.give(plane->stop(id, playback));
}

// wavProbe(Uint8Array head) -> 0: more is needed, 1: audio begins, 2: there is none, 3: not a WAV we read
napi_value wav_probe(napi_env env, napi_callback_info info) {
  Call call(env, info);
  size_t count = 0;
  const uint8_t* bytes = call.span<uint8_t>(napi_uint8_array, count);
  if (!call.ok()) return call.bad();
  WavReader reader;
  float none[1];
  (void)reader.read(bytes, count, none, 0);
  return call.give(static_cast<uint32_t>(reader.state()));
}

// wavCreate(outHz) -> wav
napi_value wav_create(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const uint32_t out_hz = call.number();
  if (!call.ok() || out_hz < 8000 || out_hz > 48000) return call.bad();
  auto handle = std::make_unique<WavHandle>();
  handle->magic = magic_wav;
  handle->out_hz = out_hz;
  return wrap(env, std::move(handle));
}

// wavRead(wav, Uint8Array bytes, Int16Array out, Uint32Array[4] status): status is consumed, made, state (as wavProbe), incomplete
napi_value wav_read(napi_env env, napi_callback_info info) {
  Call call(env, info);
  WavHandle* wav = call.handle<WavHandle>(magic_wav);
  size_t count = 0;
  const uint8_t* bytes = call.span<uint8_t>(napi_uint8_array, count);
  size_t room = 0;
  int16_t* out = call.span<int16_t>(napi_int16_array, room);
  size_t words = 0;
  uint32_t* status = call.span<uint32_t>(napi_uint32_array, words);
  Environment* state = environment(env);
  if (!call.ok() || words < 4 || state == nullptr) return call.bad();
  constexpr size_t block = 256;
  float samples[block];
  size_t used = 0;
  size_t made = 0;
  while (true) {
    if (wav->converter && room - made < wav->converter->out_max(block)) break;
    const bool was_header = wav->reader.state() == WavReader::State::header;
    const WavReader::Step step = wav->reader.read(bytes + used, count - used, samples, was_header ? 0 : block);
    used += step.consumed;
    if (!wav->converter && wav->reader.rate_hz() != 0 && wav->reader.state() == WavReader::State::data) {
      wav->converter = std::make_unique<Converter>(state->filters.get(wav->reader.rate_hz(), wav->out_hz));
    }
    if (step.made > 0) made += wav->converter->convert(samples, step.made, out + made);
    if (step.consumed == 0 && step.made == 0) break;
  }
  status[0] = static_cast<uint32_t>(used);
  status[1] = static_cast<uint32_t>(made);
  status[2] = static_cast<uint32_t>(wav->reader.state());
  status[3] = wav->reader.incomplete() ? 1 : 0;
  return nullptr;
}

// wavFlush(wav, Int16Array out) -> made: what the rate conversion still holds after the last byte
napi_value wav_flush(napi_env env, napi_callback_info info) {
  Call call(env, info);
  WavHandle* wav = call.handle<WavHandle>(magic_wav);
  size_t room = 0;
  int16_t* out = call.span<int16_t>(napi_int16_array, room);
  if (!call.ok()) return call.bad();
  if (!wav->converter) return call.give(0u);
  if (room < wav->converter->flush_max()) return call.bad();
  return call.give(static_cast<uint32_t>(wav->converter->flush(out)));
}

// pcmCreate(inHz, outHz) -> pcm
napi_value pcm_create(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const uint32_t in_hz = call.number();
  const uint32_t out_hz = call.number();
  Environment* state = environment(env);
  if (!call.ok() || state == nullptr || in_hz < 1000 || in_hz > 384000 || out_hz < 8000 || out_hz > 48000) return call.bad();
  auto handle = std::make_unique<PcmHandle>();
  handle->magic = magic_pcm;
  handle->converter = std::make_unique<Converter>(state->filters.get(in_hz, out_hz));
  return wrap(env, std::move(handle));
}

// pcmConvert(pcm, Float32Array left, Float32Array right, Int16Array out) -> made; `right` may be `left`. Throws where `out` is too short.
napi_value pcm_convert(napi_env env, napi_callback_info info) {
  Call call(env, info);
  PcmHandle* pcm = call.handle<PcmHandle>(magic_pcm);
  size_t left_count = 0;
  const float* left = call.span<float>(napi_float32_array, left_count);
  size_t right_count = 0;
  const float* right = call.span<float>(napi_float32_array, right_count);
  size_t room = 0;
  int16_t* out = call.span<int16_t>(napi_int16_array, room);
  if (!call.ok() || left_count != right_count) return call.bad();
  constexpr size_t block = 256;
  float mono[block];
  size_t made = 0;
  for (size_t at = 0; at < left_count; at += block) {
    const size_t count = left_count - at < block ? left_count - at : block;
    if (room - made < pcm->converter->out_max(count)) return call.bad();
    for (size_t i = 0; i < count; i++) {
      const float value = (left[at + i] + right[at + i]) * 0.5f;
      mono[i] = value == value ? value : 0.0f;
    }
    made += pcm->converter->convert(mono, count, out + made);
  }
  return call.give(static_cast<uint32_t>(made));
}

// pcmFlush(pcm, Int16Array out) -> made
napi_value pcm_flush(napi_env env, napi_callback_info info) {
  Call call(env, info);
  PcmHandle* pcm = call.handle<PcmHandle>(magic_pcm);
  size_t room = 0;
  int16_t* out = call.span<int16_t>(napi_int16_array, room);
  if (!call.ok() || room < pcm->converter->flush_max()) return call.bad();
  return call.give(static_cast<uint32_t>(pcm->converter->flush(out)));
}

struct Export {
  const char* name;
  napi_callback function;
};

constexpr Export exported[] = {
    {"planeCreate", plane_create}, {"planeDestroy", plane_destroy}, {"planeWakeFd", plane_wake_fd}, {"wake", wake},
    {"planeRun", plane_run},       {"planeNotices", plane_notices}, {"legOpen", leg_open},          {"legClose", leg_close},
    {"legCounters", leg_counters}, {"legNegotiate", leg_negotiate}, {"legPlay", leg_play},          {"legFeed", leg_feed},
    {"legFinish", leg_finish},     {"legStop", leg_stop},           {"wavProbe", wav_probe},        {"wavCreate", wav_create},
    {"wavRead", wav_read},         {"wavFlush", wav_flush},         {"pcmCreate", pcm_create},      {"pcmConvert", pcm_convert},
    {"pcmFlush", pcm_flush},
};

}  // namespace

NAPI_MODULE_INIT() {
  auto state = std::make_unique<Environment>();
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<Environment*>(data); };
  if (napi_set_instance_data(env, state.get(), finalize, nullptr) != napi_ok) return nullptr;
  (void)state.release();
  for (const Export& entry : exported) {
    napi_value function = nullptr;
    if (napi_create_function(env, entry.name, NAPI_AUTO_LENGTH, entry.function, nullptr, &function) != napi_ok ||
        napi_set_named_property(env, exports, entry.name, function) != napi_ok) {
      return nullptr;
    }
  }
  return exports;
}
