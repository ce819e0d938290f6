// AAC sources: ADTS frames to mono sound.
#include "addon/exports.h"
#include "decode/aac_decoder.h"

namespace sidetone {
namespace {

struct AacHandle : Handle {
  static constexpr uint32_t kind = 0x41414344;
  std::unique_ptr<AacDecoder> decoder;
};

// aacAvailable() -> whether this build can decode AAC on this machine
Napi::Value aac_available(const Napi::CallbackInfo& info) { return Arguments(info).give(AacDecoder::available()); }

// aacCreate() -> aac; undefined where there is no decoder
Napi::Value aac_create(const Napi::CallbackInfo& info) {
  auto handle = std::make_unique<AacHandle>();
  handle->decoder = AacDecoder::open();
  if (!handle->decoder) return info.Env().Undefined();
  return wrap(info.Env(), std::move(handle));
}

// aacDecode(aac, Uint8Array frame, Float32Array[8192] out, Uint32Array[2] status) -> whether the frame was read; status
// is the samples made and their rate
Napi::Value aac_decode(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  AacHandle* aac = arguments.handle<AacHandle>();
  size_t bytes = 0;
  const uint8_t* frame = arguments.span<uint8_t>(bytes);
  size_t room = 0;
  float* out = arguments.span<float>(room);
  size_t words = 0;
  uint32_t* status = arguments.span<uint32_t>(words);
  if (!arguments.ok() || !aac->decoder || room < AacDecoder::frame_max_samples || words < 2) return arguments.refuse();
  const AacDecoder::Sound sound = aac->decoder->decode(frame, bytes, out);
  status[0] = static_cast<uint32_t>(sound.samples);
  status[1] = sound.hz;
  return arguments.give(!sound.failed);
}

// aacClose(aac): frees the decoder, which the collector knows to be small
Napi::Value aac_close(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  AacHandle* aac = arguments.handle<AacHandle>();
  if (!arguments.ok()) return arguments.refuse();
  aac->decoder = nullptr;
  return info.Env().Undefined();
}

constexpr Export exported[] = {
    {"aacAvailable", aac_available},
    {"aacCreate", aac_create},
    {"aacDecode", aac_decode},
    {"aacClose", aac_close},
};

}  // namespace

Exports aac_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
