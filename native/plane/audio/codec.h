// The audio codecs of a leg behind one interface. Each has 64 kbit/s: one octet for each unit of the 8 kHz RTP clock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernel/codec/g711.h"
#include "kernel/codec/g722.h"

namespace sidetone {

/** The numbers are shared with src/media/worker/worker-command.ts. */
enum class Codec : uint8_t { pcmu = 0, pcma = 1, g722 = 2 };

constexpr uint32_t rtp_clock_hz = 8000;
constexpr size_t frame_units = 160;        // 20 ms
constexpr size_t frame_samples_max = 320;  // 20 ms at 16 kHz

constexpr uint32_t codec_rate_hz(Codec codec) { return codec == Codec::g722 ? 16000 : 8000; }
constexpr size_t codec_samples(Codec codec, size_t units) { return codec == Codec::g722 ? units * 2 : units; }

class Encoder {
 public:
  /** Encodes `units` octets from as many sample times. `pcm` is nullptr for silence. */
  void encode(Codec codec, const int16_t* pcm, uint8_t* out, size_t units) {
    switch (codec) {
      case Codec::pcmu:
        if (pcm == nullptr) std::memset(out, mulaw_silence, units);
        else mulaw_encode(pcm, out, units);
        break;
      case Codec::pcma:
        if (pcm == nullptr) std::memset(out, alaw_silence, units);
        else alaw_encode(pcm, out, units);
        break;
      case Codec::g722: {
        static constexpr int16_t zeros[frame_samples_max] = {};
        g722_.encode(pcm == nullptr ? zeros : pcm, units * 2, out);
        break;
      }
    }
  }
  void reset() { g722_ = G722Encoder(); }

 private:
  G722Encoder g722_;
};

class Decoder {
 public:
  /** Decodes `units` octets to `codec_samples(codec, units)` samples. */
  void decode(Codec codec, const uint8_t* in, int16_t* pcm, size_t units) {
    switch (codec) {
      case Codec::pcmu: mulaw_decode(in, pcm, units); break;
      case Codec::pcma: alaw_decode(in, pcm, units); break;
      case Codec::g722: g722_.decode(in, units, pcm); break;
    }
  }
  void reset() { g722_ = G722Decoder(); }

 private:
  G722Decoder g722_;
};

}  // namespace sidetone
