#include "kernel/g722.h"

#include <cstring>

namespace sidetone {
namespace {

// Table 13/G.722 and following: QMF coefficients (each used from both ends), quantizer decision levels and outputs, scale factor steps.
constexpr int32_t qmf[12] = {3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11};
constexpr int32_t q6[30] = {35,   72,   110,  150,  190,  233,  276,  323,  370,  422,  473,  530,  587,  650,  714,
                            786,  858,  940,  1023, 1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919, 0};
constexpr uint8_t lower_negative[31] = {0,  63, 62, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19,
                                        18, 17, 16, 15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4};
constexpr uint8_t lower_positive[31] = {0,  61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47,
                                        46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32};
constexpr int32_t lower_out4[16] = {0,    -20456, -12896, -8968, -6288, -4240, -2584, -1200,
                                    20456, 12896,  8968,   6288,  4240,  2584,  1200,  0};
constexpr int32_t lower_out6[64] = {-136,  -136,  -136,  -136,  -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232,
                                    -9360, -8576, -7856, -7192, -6576,  -6000,  -5456,  -4944,  -4464,  -4008,  -3576,  -3168,  -2776,
                                    -2400, -2032, -1688, -1360, -1040,  -728,   24808,  21904,  19008,  16704,  14984,  13512,  12280,
                                    11192, 10232, 9360,  8576,  7856,   7192,   6576,   6000,   5456,   4944,   4464,   4008,   3576,
                                    3168,  2776,  2400,  2032,  1688,   1360,   1040,   728,    432,    136,    -432,   -136};
constexpr int32_t lower_step[16] = {-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60};
constexpr int32_t higher_out[4] = {-7408, -1616, 7408, 1616};
constexpr int32_t higher_step[4] = {798, -214, 798, -214};
constexpr int32_t antilog[32] = {2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834,
                                 2896, 2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008};

inline int32_t sat16(int32_t value) { return value > 32767 ? 32767 : value < -32768 ? -32768 : value; }

/** LOGSCL and SCALEL, or LOGSCH and SCALEH: a leaky step of the logarithm, then back to the linear scale. */
inline void rescale(G722Band& band, int32_t step, int32_t most, int32_t shift_base) {
  int32_t log = ((band.scale_log * 127) >> 7) + step;
  log = log < 0 ? 0 : log > most ? most : log;
  band.scale_log = log;
  const int32_t mantissa = antilog[(log >> 6) & 31];
  const int32_t shift = shift_base - (log >> 11);
  band.scale = (shift < 0 ? mantissa << -shift : mantissa >> shift) << 2;
}

inline void lower_update(G722Band& band, int32_t code4) {
  const int32_t difference = (band.scale * lower_out4[code4]) >> 15;
  rescale(band, lower_step[code4], 18432, 8);
  band.adapt(difference);
}

inline void higher_update(G722Band& band, int32_t code2) {
  const int32_t difference = (band.scale * higher_out[code2]) >> 15;
  rescale(band, higher_step[code2], 22528, 10);
  band.adapt(difference);
}

}  // namespace

void G722Band::adapt(int32_t now) {
  // RECONS, PARREC
  const int32_t rebuilt = sat16(estimate + now);
  const int32_t part = sat16(zero_part + now);

  // UPPOL2, UPPOL1: signs of the partially reconstructed signal steer the poles.
  const bool same1 = (part < 0) == (partial[0] < 0);
  const bool same2 = (part < 0) == (partial[1] < 0);
  const int32_t four_a1 = sat16(pole[0] * 4);
  int32_t w = same1 ? -four_a1 : four_a1;
  if (w > 32767) w = 32767;
  int32_t a2 = (same2 ? 128 : -128) + (w >> 7) + ((pole[1] * 32512) >> 15);
  a2 = a2 > 12288 ? 12288 : a2 < -12288 ? -12288 : a2;
  int32_t a1 = (same1 ? 192 : -192) + ((pole[0] * 32640) >> 15);
  const int32_t bound = sat16(15360 - a2);
  a1 = a1 > bound ? bound : a1 < -bound ? -bound : a1;

  // UPZERO
  const int32_t gain = now == 0 ? 0 : 128;
  for (int i = 0; i < 6; i++) {
    const bool same = (now < 0) == (difference[i] < 0);
    zero[i] = sat16((same ? gain : -gain) + ((zero[i] * 32640) >> 15));
  }

  // DELAYA
  for (int i = 5; i > 0; i--) difference[i] = difference[i - 1];
  difference[0] = now;
  partial[1] = partial[0];
  partial[0] = part;
  reconstructed[1] = reconstructed[0];
  reconstructed[0] = rebuilt;
  pole[0] = a1;
  pole[1] = a2;

  // FILTEP, FILTEZ, PREDIC
  const int32_t p1 = (pole[0] * sat16(reconstructed[0] * 2)) >> 15;
  const int32_t p2 = (pole[1] * sat16(reconstructed[1] * 2)) >> 15;
  int32_t sum = 0;
  for (int i = 0; i < 6; i++) sum += (zero[i] * sat16(difference[i] * 2)) >> 15;
  zero_part = sat16(sum);
  estimate = sat16(sat16(p1 + p2) + zero_part);
}

G722Encoder::G722Encoder() {
  lower_.scale = 32;
  higher_.scale = 8;
}

void G722Encoder::encode(const int16_t* pcm, size_t count, uint8_t* out) {
  for (size_t at = 0; at + 1 < count; at += 2) {
    std::memmove(history_, history_ + 2, 22 * sizeof(int32_t));
    history_[22] = pcm[at];
    history_[23] = pcm[at + 1];
    int32_t even = 0;
    int32_t odd = 0;
    for (int i = 0; i < 12; i++) {
      odd += history_[2 * i] * qmf[i];
      even += history_[2 * i + 1] * qmf[11 - i];
    }
    const int32_t low = sat16((even + odd) >> 14);
    const int32_t high = sat16((even - odd) >> 14);

    // QUANTL: the magnitude of the error against 29 decision levels scaled by DETL.
    const int32_t error_low = sat16(low - lower_.estimate);
    const int32_t magnitude = error_low >= 0 ? error_low : ~error_low;
    int level = 1;
    while (level < 30 && magnitude >= (q6[level - 1] * lower_.scale) >> 12) level++;
    const int32_t code_low = error_low < 0 ? lower_negative[level] : lower_positive[level];
    lower_update(lower_, code_low >> 2);

    // QUANTH
    const int32_t error_high = sat16(high - higher_.estimate);
    const int32_t size = error_high >= 0 ? error_high : ~error_high;
    const bool outer = size >= (564 * higher_.scale) >> 12;
    const int32_t code_high = error_high < 0 ? (outer ? 0 : 1) : (outer ? 2 : 3);
    higher_update(higher_, code_high);

    out[at / 2] = static_cast<uint8_t>(code_high << 6 | code_low);
  }
}

G722Decoder::G722Decoder() {
  lower_.scale = 32;
  higher_.scale = 8;
}

void G722Decoder::decode(const uint8_t* in, size_t count, int16_t* pcm) {
  for (size_t at = 0; at < count; at++) {
    const int32_t code_low = in[at] & 0x3f;
    const int32_t code_high = in[at] >> 6;
    int32_t low = lower_.estimate + ((lower_.scale * lower_out6[code_low]) >> 15);
    low = low > 16383 ? 16383 : low < -16384 ? -16384 : low;
    lower_update(lower_, code_low >> 2);
    int32_t high = higher_.estimate + ((higher_.scale * higher_out[code_high]) >> 15);
    high = high > 16383 ? 16383 : high < -16384 ? -16384 : high;
    higher_update(higher_, code_high);

    std::memmove(history_, history_ + 2, 22 * sizeof(int32_t));
    history_[22] = low + high;
    history_[23] = low - high;
    int32_t first = 0;
    int32_t second = 0;
    for (int i = 0; i < 12; i++) {
      second += history_[2 * i] * qmf[i];
      first += history_[2 * i + 1] * qmf[11 - i];
    }
    pcm[2 * at] = static_cast<int16_t>(sat16(first >> 11));
    pcm[2 * at + 1] = static_cast<int16_t>(sat16(second >> 11));
  }
}

}  // namespace sidetone
