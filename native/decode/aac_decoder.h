// AAC (LC, HE, HE v2) by libavcodec. The library is opened when the first AAC source is played and not before: it
// brings some ninety others along, which no call without AAC should pay for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace sidetone {

/** The decoder of one AAC source: whole ADTS frames in, mono sound out. It belongs to one thread. */
class AacDecoder {
 public:
  /** The most samples that one frame gives: four raw data blocks of 1,024, doubled by spectral band replication. */
  static constexpr size_t frame_max_samples = 8192;
  /** The most bytes of a frame: its length has 13 bits (ISO 13818-7 §6.2). */
  static constexpr size_t frame_max_bytes = 8191;

  struct Sound {
    /** Samples written; 0 where the decoder only took the frame in. */
    size_t samples = 0;
    /** The rate of the samples, which for HE-AAC is twice that in the frame's header. */
    uint32_t hz = 0;
    /** The frame is damaged, or none that is read. */
    bool failed = false;
  };

  /** Whether this build can decode AAC on this machine. The first call looks for the library. */
  static bool available();
  /** A new decoder, or null where AAC is not available. */
  static std::unique_ptr<AacDecoder> open();
  ~AacDecoder();
  AacDecoder(const AacDecoder&) = delete;
  AacDecoder& operator=(const AacDecoder&) = delete;

  /** Decodes one frame to the mean of its channels, -1 to 1. `out` has room for `frame_max_samples`. */
  Sound decode(const uint8_t* frame, size_t bytes, float* out);

 private:
  struct State;
  explicit AacDecoder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sidetone
