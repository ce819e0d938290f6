// MPEG sources: whole frames to mono sound.
#include "addon/exports.h"
#include "decode/mpeg_decoder.h"

namespace sidetone {
namespace {

struct MpegHandle : Handle {
  static constexpr uint32_t kind = 0x4d504547;
  std::unique_ptr<MpegDecoder> decoder;
};

// mpegCreate() -> mpeg; undefined where there is no decoder
Napi::Value mpeg_create(const Napi::CallbackInfo& info) {
  auto handle = std::make_unique<MpegHandle>();
  handle->decoder = MpegDecoder::open();
  if (!handle->decoder) return info.Env().Undefined();
  return wrap(info.Env(), std::move(handle));
}

// mpegDecode(mpeg, Uint8Array bytes, Float32Array[4608] out, Uint32Array[3] status) -> whether the bytes were read;
// status is the samples made, their rate, and whether the bytes so far hold more
Napi::Value mpeg_decode(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  MpegHandle* mpeg = arguments.handle<MpegHandle>();
  size_t count = 0;
  const uint8_t* bytes = arguments.span<uint8_t>(count);
  size_t room = 0;
  float* out = arguments.span<float>(room);
  size_t words = 0;
  uint32_t* status = arguments.span<uint32_t>(words);
  if (!arguments.ok() || !mpeg->decoder || room < MpegDecoder::sound_max_samples || words < 3)
    return arguments.refuse();
  const MpegDecoder::Sound sound = mpeg->decoder->decode(bytes, count, out);
  status[0] = static_cast<uint32_t>(sound.samples);
  status[1] = sound.hz;
  status[2] = sound.more ? 1 : 0;
  return arguments.give(!sound.failed);
}

// mpegClose(mpeg): frees the decoder, which the collector knows to be small
Napi::Value mpeg_close(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  MpegHandle* mpeg = arguments.handle<MpegHandle>();
  if (!arguments.ok()) return arguments.refuse();
  mpeg->decoder = nullptr;
  return info.Env().Undefined();
}

constexpr Export exported[] = {
    {"mpegCreate", mpeg_create},
    {"mpegDecode", mpeg_decode},
    {"mpegClose", mpeg_close},
};

}  // namespace

Exports mpeg_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
