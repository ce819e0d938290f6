// Legs whose far end is script. Inboxes are of the process: the main thread writes to what a worker's plane plays.
#include "addon/call.h"
#include "plane/stream/stream_inbox.h"

namespace sidetone {
namespace {

// inboxOpen() -> number
napi_value inbox_open(napi_env env, napi_callback_info info) {
  Call call(env, info);
  return call.give(StreamInbox::open().first);
}

// inboxClose(number)
napi_value inbox_close(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const uint32_t number = call.number();
  if (!call.ok()) return call.bad();
  StreamInbox::close(number);
  return nullptr;
}

// inboxWrite(number, Uint8Array bytes, mostBytes) -> false where so much is waiting already, or there is no such inbox
napi_value inbox_write(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const uint32_t number = call.number();
  size_t count = 0;
  const uint8_t* bytes = call.span<uint8_t>(napi_uint8_array, count);
  const uint32_t most = call.number();
  if (!call.ok()) return call.bad();
  const std::shared_ptr<StreamInbox> inbox = StreamInbox::find(number);
  return call.give(inbox != nullptr && inbox->write(bytes, count, most));
}

// inboxClear(number)
napi_value inbox_clear(napi_env env, napi_callback_info info) {
  Call call(env, info);
  const uint32_t number = call.number();
  if (!call.ok()) return call.bad();
  const std::shared_ptr<StreamInbox> inbox = StreamInbox::find(number);
  if (inbox) inbox->clear();
  return nullptr;
}

// streamOpen(plane, leg, inbox, toMulaw, toHz, fromMulaw, fromHz) -> false where the number is in use or there is no such inbox
napi_value stream_open(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  const uint32_t id = call.number();
  const uint32_t number = call.number();
  StreamFormat to;
  StreamFormat from;
  to.encoding = call.boolean() ? StreamEncoding::mulaw : StreamEncoding::pcm;
  to.rate_hz = call.number();
  from.encoding = call.boolean() ? StreamEncoding::mulaw : StreamEncoding::pcm;
  from.rate_hz = call.number();
  if (!call.ok() || rate_table_hz[rate_index(to.rate_hz)] != to.rate_hz || rate_table_hz[rate_index(from.rate_hz)] != from.rate_hz) return call.bad();
  return call.give(plane->open_stream(id, StreamInbox::find(number), to, from));
}

// planeFrames(plane, Uint8Array out) -> bytes written: whole records of frames since the last call, or more than `out` holds where it is too short
napi_value plane_frames(napi_env env, napi_callback_info info) {
  Call call(env, info);
  Plane* plane = call.plane();
  size_t room = 0;
  uint8_t* out = call.span<uint8_t>(napi_uint8_array, room);
  if (!call.ok()) return call.bad();
  return call.give(static_cast<uint32_t>(plane->take_frames(out, room)));
}

constexpr Export exported[] = {
    {"inboxOpen", inbox_open},   {"inboxClose", inbox_close}, {"inboxWrite", inbox_write},
    {"inboxClear", inbox_clear}, {"streamOpen", stream_open}, {"planeFrames", plane_frames},
};

}  // namespace

Exports stream_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
