// RIFF/WAVE, read as it arrives: bytes of any size in, mono samples out (-1 to 1; a 16-bit sample is exact). PCM of 8,
// 16, 24 and 32 bits, float of 32 and 64, mu-law and A-law, plain or WAVE_FORMAT_EXTENSIBLE; one or two channels, two
// are averaged.
//
//   "RIFF" size "WAVE"  { id size body pad }...
//
// Chunks are padded to even length; fmt comes before data, others are skipped.
//
// A data size of 0xFFFFFFFF, or any beyond `data_bytes_max`, or 0 in a RIFF of 0, is that of a stream still being
// written: data runs to the end.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

class WavReader {
 public:
  enum class State : uint8_t { header, data, ended, unsupported };
  struct Step {
    size_t consumed;
    size_t made;
  };

  /** Takes bytes and writes at most `room` samples; call again with what was not consumed while either count is above
   * zero. */
  Step read(const uint8_t* bytes, size_t count, float* out, size_t room);
  State state() const { return state_; }
  /** Known once `state` has left `header`. */
  uint32_t rate_hz() const { return rate_hz_; }
  uint32_t channels() const { return channels_; }
  /** Whether the data chunk named a size and not all of it has come: a file cut short. */
  bool incomplete() const { return state_ == State::header || (state_ == State::data && (!endless_ || partial_ > 0)); }

  static constexpr uint64_t data_bytes_max = 0x7ffff000;
  static constexpr uint32_t header_bytes_max = 1 << 20;
  static constexpr uint32_t rate_min_hz = 1000;
  static constexpr uint32_t rate_max_hz = 384000;

 private:
  enum class Part : uint8_t { riff, chunk, format, skip };
  enum class Kind : uint8_t { none, u8, s16, s24, s32, f32, f64, mulaw, alaw };

  void next_chunk();
  void part_complete();
  void parse_format();
  void chunk_begins();
  float sample(const uint8_t* at) const;

  State state_ = State::header;
  Part part_ = Part::riff;
  Kind kind_ = Kind::none;
  bool endless_ = false;
  uint8_t held_[40] = {};
  uint32_t have_ = 0;
  uint32_t want_ = 12;
  uint32_t after_ = 0;  // bytes of the format chunk past what is kept
  uint64_t skip_ = 0;
  uint64_t left_ = 0;
  uint64_t header_bytes_ = 0;
  uint32_t riff_size_ = 0;
  uint32_t rate_hz_ = 0;
  uint32_t channels_ = 0;
  uint32_t sample_bytes_ = 0;
  uint32_t block_bytes_ = 0;
  uint32_t partial_ = 0;
};

}  // namespace sidetone
