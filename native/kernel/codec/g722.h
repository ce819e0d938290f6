// ITU-T G.722 at 64 kbit/s (mode 1): 16 kHz audio split by a 24-tap QMF into two 8 kHz bands, ADPCM of 6 bits for the
// lower and 2 for the higher, one octet for two samples, lower band in the low bits. Integer arithmetic of the
// Recommendation; block names are its own.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernel/codec/g722_zeros.h"

namespace sidetone {

/** The backward-adaptive predictor and quantizer scale of one band (blocks 3L/3H and 4L/4H), as kept between frames. */
struct G722Band {
  int32_t scale_log = 0;     // NB
  int32_t scale = 0;         // DET
  int32_t estimate = 0;      // S
  int32_t zero_part = 0;     // SZ
  int32_t pole[2] = {0, 0};  // A1, A2
  int32_t reconstructed = 0;
  int32_t partial[2] = {0, 0};
  G722ZeroState zeros;
};

constexpr size_t g722_qmf_taps = 24;

/** What the encoder's filter bank (TX QMF) makes of two samples at 16 kHz: one of each band, of 15 bits. */
struct G722Bands {
  int32_t lower;
  int32_t higher;
};
/** The bands of the last two of 24 samples. */
G722Bands g722_split(const int16_t* samples);

class G722Encoder {
 public:
  G722Encoder();
  /** Encodes `count` samples at 16 kHz (even) to `count / 2` octets. */
  void encode(const int16_t* pcm, size_t count, uint8_t* out);

 private:
  G722Band lower_;
  G722Band higher_;
  int16_t history_[g722_qmf_taps - 2] = {};
};

class G722Decoder {
 public:
  G722Decoder();
  /** Decodes `count` octets to `2 * count` samples at 16 kHz. */
  void decode(const uint8_t* in, size_t count, int16_t* pcm);

 private:
  G722Band lower_;
  G722Band higher_;
  int16_t history_[g722_qmf_taps - 2] = {};
};

}  // namespace sidetone
