// Legs whose far end is script. Inboxes are of the process: the main thread writes to what a worker's plane plays.
#include "addon/exports.h"
#include "plane/stream/stream_inbox.h"

namespace sidetone {
namespace {

// inboxOpen() -> number
Napi::Value inbox_open(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  return arguments.give(StreamInbox::open().first);
}

// inboxClose(number)
Napi::Value inbox_close(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t number = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  StreamInbox::close(number);
  return info.Env().Undefined();
}

// inboxWrite(number, Uint8Array bytes, mostBytes) -> false where so much is waiting already, or there is no such inbox
Napi::Value inbox_write(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t number = arguments.number();
  size_t count = 0;
  const uint8_t* bytes = arguments.span<uint8_t>(count);
  const uint32_t most = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  const std::shared_ptr<StreamInbox> inbox = StreamInbox::find(number);
  return arguments.give(inbox != nullptr && inbox->write(bytes, count, most));
}

// inboxClear(number)
Napi::Value inbox_clear(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t number = arguments.number();
  if (!arguments.ok()) return arguments.refuse();
  const std::shared_ptr<StreamInbox> inbox = StreamInbox::find(number);
  if (inbox) inbox->clear();
  return info.Env().Undefined();
}

// inboxPause(number, on)
Napi::Value inbox_pause(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t number = arguments.number();
  const bool on = arguments.boolean();
  if (!arguments.ok()) return arguments.refuse();
  const std::shared_ptr<StreamInbox> inbox = StreamInbox::find(number);
  if (inbox) inbox->pause(on);
  return info.Env().Undefined();
}

// streamOpen(plane, leg, inbox, toMulaw, toHz, fromMulaw, fromHz) -> false where the number is in use or there is no
// such inbox
Napi::Value stream_open(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  const uint32_t id = arguments.number();
  const uint32_t number = arguments.number();
  StreamFormat to;
  StreamFormat from;
  to.encoding = arguments.boolean() ? StreamEncoding::mulaw : StreamEncoding::pcm;
  to.rate_hz = arguments.number();
  from.encoding = arguments.boolean() ? StreamEncoding::mulaw : StreamEncoding::pcm;
  from.rate_hz = arguments.number();
  if (!arguments.ok() || rate_table_hz[rate_index(to.rate_hz)] != to.rate_hz ||
      rate_table_hz[rate_index(from.rate_hz)] != from.rate_hz)
    return arguments.refuse();
  return arguments.give(plane->open_stream(id, StreamInbox::find(number), to, from));
}

// planeFrames(plane, Uint8Array out) -> bytes written: whole records of frames since the last call, or more than `out`
// holds where it is too short
Napi::Value plane_frames(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Plane* plane = arguments.plane();
  size_t room = 0;
  uint8_t* out = arguments.span<uint8_t>(room);
  if (!arguments.ok()) return arguments.refuse();
  return arguments.give(static_cast<uint32_t>(plane->take_frames(out, room)));
}

constexpr Export exported[] = {
    {"inboxOpen", inbox_open},     {"inboxClose", inbox_close}, {"inboxWrite", inbox_write},
    {"inboxClear", inbox_clear},   {"inboxPause", inbox_pause}, {"streamOpen", stream_open},
    {"planeFrames", plane_frames},
};

}  // namespace

Exports stream_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
