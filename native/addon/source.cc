// Sources of playbacks: WAV bytes and PCM of any rate to 16-bit PCM at the rate of a leg.
#include "addon/exports.h"
#include "kernel/wav/wav.h"

namespace sidetone {
namespace {

struct WavHandle : Handle {
  static constexpr uint32_t kind = 0x57415652;
  WavReader reader;
  std::unique_ptr<Converter> converter;
  uint32_t out_hz = 8000;
};

struct PcmHandle : Handle {
  static constexpr uint32_t kind = 0x50434d43;
  std::unique_ptr<Converter> converter;
};

// wavCreate(outHz) -> wav
Napi::Value wav_create(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t out_hz = arguments.number();
  if (!arguments.ok() || out_hz < 8000 || out_hz > 48000) return arguments.refuse();
  auto handle = std::make_unique<WavHandle>();
  handle->out_hz = out_hz;
  return wrap(info.Env(), std::move(handle));
}

// wavRead(wav, Uint8Array bytes, Int16Array out, Uint32Array[4] status): status is consumed, made, state (0 head, 1
// sound, 2 ended, 3 no WAV we read), incomplete
Napi::Value wav_read(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  WavHandle* wav = arguments.handle<WavHandle>();
  size_t count = 0;
  const uint8_t* bytes = arguments.span<uint8_t>(count);
  size_t room = 0;
  int16_t* out = arguments.span<int16_t>(room);
  size_t words = 0;
  uint32_t* status = arguments.span<uint32_t>(words);
  Environment* state = info.Env().GetInstanceData<Environment>();
  if (!arguments.ok() || words < 4 || state == nullptr) return arguments.refuse();
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
  return info.Env().Undefined();
}

// wavFlush(wav, Int16Array out) -> made: what the rate conversion still holds after the last byte
Napi::Value wav_flush(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  WavHandle* wav = arguments.handle<WavHandle>();
  size_t room = 0;
  int16_t* out = arguments.span<int16_t>(room);
  if (!arguments.ok()) return arguments.refuse();
  if (!wav->converter) return arguments.give(0u);
  if (room < wav->converter->flush_max()) return arguments.refuse();
  return arguments.give(static_cast<uint32_t>(wav->converter->flush(out)));
}

// pcmCreate(inHz, outHz) -> pcm
Napi::Value pcm_create(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  const uint32_t in_hz = arguments.number();
  const uint32_t out_hz = arguments.number();
  Environment* state = info.Env().GetInstanceData<Environment>();
  if (!arguments.ok() || state == nullptr || in_hz < 1000 || in_hz > 384000 || out_hz < 8000 || out_hz > 48000)
    return arguments.refuse();
  auto handle = std::make_unique<PcmHandle>();
  handle->converter = std::make_unique<Converter>(state->filters.get(in_hz, out_hz));
  return wrap(info.Env(), std::move(handle));
}

// pcmConvert(pcm, Float32Array left, Float32Array right, Int16Array out) -> made; `right` may be `left`. Throws where
// `out` is too short.
Napi::Value pcm_convert(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  PcmHandle* pcm = arguments.handle<PcmHandle>();
  size_t left_count = 0;
  const float* left = arguments.span<float>(left_count);
  size_t right_count = 0;
  const float* right = arguments.span<float>(right_count);
  size_t room = 0;
  int16_t* out = arguments.span<int16_t>(room);
  if (!arguments.ok() || left_count != right_count) return arguments.refuse();
  constexpr size_t block = 256;
  float mono[block];
  size_t made = 0;
  for (size_t at = 0; at < left_count; at += block) {
    const size_t count = left_count - at < block ? left_count - at : block;
    if (room - made < pcm->converter->out_max(count)) return arguments.refuse();
    for (size_t i = 0; i < count; i++) {
      const float value = (left[at + i] + right[at + i]) * 0.5f;
      mono[i] = value == value ? value : 0.0f;
    }
    made += pcm->converter->convert(mono, count, out + made);
  }
  return arguments.give(static_cast<uint32_t>(made));
}

// pcmFlush(pcm, Int16Array out) -> made
Napi::Value pcm_flush(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  PcmHandle* pcm = arguments.handle<PcmHandle>();
  size_t room = 0;
  int16_t* out = arguments.span<int16_t>(room);
  if (!arguments.ok() || room < pcm->converter->flush_max()) return arguments.refuse();
  return arguments.give(static_cast<uint32_t>(pcm->converter->flush(out)));
}

constexpr Export exported[] = {
    {"wavCreate", wav_create}, {"wavRead", wav_read},       {"wavFlush", wav_flush},
    {"pcmCreate", pcm_create}, {"pcmConvert", pcm_convert}, {"pcmFlush", pcm_flush},
};

}  // namespace

Exports source_exports() { return {exported, sizeof exported / sizeof exported[0]}; }

}  // namespace sidetone
