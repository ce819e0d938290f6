// The audio codecs of a leg. G.711 and G.722 have 64 kbit/s, one octet for each unit of an RTP clock of 8 kHz, and are
// behind one interface here. Opus has packets of any length on a clock of 48 kHz (plane/audio/opus.h). L16 has two
// octets for each sample, on a clock of its rate; it is spoken in pipes between nodes only, in packets of 20 ms. At 24
// kHz these have 960 octets; at 48 kHz they would not fit into the 1,500 of a network.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernel/codec/g711.h"
#include "kernel/codec/g722.h"
#include "kernel/codec/l16.h"

namespace sidetone {

/** The numbers are shared with src/media/worker/worker-command.ts. */
enum class Codec : uint8_t { pcmu = 0, pcma = 1, g722 = 2, opus = 3, l16_8k = 4, l16_16k = 5, l16_24k = 6 };

constexpr uint8_t codec_max = 6;

constexpr uint32_t rtp_clock_hz = 8000;
constexpr size_t frame_units = 160;        // 20 ms
constexpr size_t frame_samples_max = 320;  // 20 ms at 16 kHz, the most of a codec that has octets

constexpr bool is_g711(Codec codec) { return codec == Codec::pcmu || codec == Codec::pcma; }

/** Whether the codec has one octet for each unit of 125 us. The others have packets, which are kept whole. */
constexpr bool has_octets(Codec codec) { return is_g711(codec) || codec == Codec::g722; }

constexpr uint32_t codec_rate_hz(Codec codec) {
  switch (codec) {
    case Codec::opus: return 48000;
    case Codec::l16_24k: return 24000;
    case Codec::l16_16k:
    case Codec::g722: return 16000;
    default: return 8000;
  }
}
/** The samples of so many units of 125 us. */
constexpr size_t codec_samples(Codec codec, size_t units) { return units * (codec_rate_hz(codec) / rtp_clock_hz); }
/** How often the codec's RTP clock counts in a unit of 125 us. That of G.722 does not count its samples (RFC 3551
 * §4.5.2), those of Opus and L16 do (RFC 7587 §4.1). */
constexpr uint32_t codec_clock_scale(Codec codec) {
  return codec == Codec::g722 ? 1 : codec_rate_hz(codec) / rtp_clock_hz;
}

class Encoder {
 public:
  /** Encodes `units` octets of a codec that has them from as many sample times. `pcm` is nullptr for silence. */
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
      default: break;  // has packets of its own
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
      default: break;  // CodedPackets decodes it
    }
  }
  void reset() { g722_ = G722Decoder(); }

 private:
  G722Decoder g722_;
};

}  // namespace sidetone
