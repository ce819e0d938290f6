// MPEG audio, layers I to III, by the machine's libmpg123. The library is opened when the first such source is played;
// where it is missing, script decodes with the same library in WebAssembly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace sidetone {

/** The decoder of one MPEG source: bytes of whole frames in, mono sound out. It belongs to one thread. */
class MpegDecoder {
 public:
  /** The most samples that one call gives: four frames of layer II or III. */
  static constexpr size_t sound_max_samples = 4 * 1152;

  struct Sound {
    /** Samples written. */
    size_t samples = 0;
    /** The rate of the samples in Hz. */
    uint32_t hz = 0;
    /** The bytes so far hold more sound: the next call should give no bytes. */
    bool more = false;
    /** The library stumbles over these bytes and will not get past them. */
    bool failed = false;
  };

  /** Whether this build finds libmpg123 on this machine. The first call looks for it. */
  static bool available();
  /** A new decoder, or null where libmpg123 is not available. */
  static std::unique_ptr<MpegDecoder> open();
  ~MpegDecoder();
  MpegDecoder(const MpegDecoder&) = delete;
  MpegDecoder& operator=(const MpegDecoder&) = delete;

  /**
   * Takes bytes, of which there may be none, and decodes to the mean of the channels, -1 to 1. `out` has room for
   * `sound_max_samples`. What an encoder's tag calls delay and padding is left out.
   */
  Sound decode(const uint8_t* bytes, size_t count, float* out);

 private:
  struct State;
  explicit MpegDecoder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sidetone
