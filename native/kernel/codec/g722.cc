#include "kernel/codec/g722.h"

#include <cstring>

namespace sidetone {
namespace {

// Table 13/G.722 and following: QMF coefficients (each used from both ends), quantizer decision levels and outputs,
// scale factor steps.
constexpr int16_t qmf[12] = {3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11};
constexpr int levels = 29;
constexpr int16_t q6[32] = {35,  72,  110, 150,  190,  233,  276,  323,  370,  422,  473,  530,  587,  650, 714,
                            786, 858, 940, 1023, 1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919};
constexpr uint8_t lower_code[2][31] = {
    {0,  61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47,
     46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32},
    {0,  63, 62, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19,
     18, 17, 16, 15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4}};  // of errors below zero
constexpr int32_t lower_out4[16] = {0,     -20456, -12896, -8968, -6288, -4240, -2584, -1200,
                                    20456, 12896,  8968,   6288,  4240,  2584,  1200,  0};
constexpr int32_t lower_out6[64] = {
    -136,  -136,  -136,  -136,  -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232,
    -9360, -8576, -7856, -7192, -6576,  -6000,  -5456,  -4944,  -4464,  -4008,  -3576,  -3168,  -2776,
    -2400, -2032, -1688, -1360, -1040,  -728,   24808,  21904,  19008,  16704,  14984,  13512,  12280,
    11192, 10232, 9360,  8576,  7856,   7192,   6576,   6000,   5456,   4944,   4464,   4008,   3576,
    3168,  2776,  2400,  2032,  1688,   1360,   1040,   728,    432,    136,    -432,   -136};
constexpr int32_t lower_step[16] = {-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60};
constexpr int32_t higher_out[4] = {-7408, -1616, 7408, 1616};
constexpr int32_t higher_step[4] = {798, -214, 798, -214};
constexpr int32_t antilog[32] = {2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543,
                                 2599, 2656, 2714, 2774, 2834, 2896, 2960, 3025, 3091, 3158, 3228,
                                 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008};

/** The limit of the low and high band, 15 bits (G.722 §3.1, TX QMF and blocks 3L and 3H). */
inline int32_t limit15(int32_t value) { return value > 16383 ? 16383 : value < -16384 ? -16384 : value; }
inline int32_t sat16(int32_t value) { return value > 32767 ? 32767 : value < -32768 ? -32768 : value; }

/** One band while a frame lasts, in registers. */
class Band {
 public:
  explicit Band(const G722Band& state) : now_(state), zeros_(state.zeros) {}
  void save(G722Band& state) const {
    state = now_;
    zeros_.save(state.zeros);
  }
  int32_t scale() const { return now_.scale; }
  int32_t estimate() const { return now_.estimate; }

  void lower_update(int32_t code4) {
    const int32_t difference = (now_.scale * lower_out4[code4]) >> 15;
    rescale(lower_step[code4], 18432, 8);
    adapt(difference);
  }

  void higher_update(int32_t code2) {
    const int32_t difference = (now_.scale * higher_out[code2]) >> 15;
    rescale(higher_step[code2], 22528, 10);
    adapt(difference);
  }

 private:
  /** LOGSCL and SCALEL, or LOGSCH and SCALEH: a leaky step of the logarithm, then back to the linear scale. */
  void rescale(int32_t step, int32_t most, int32_t shift_base) {
    int32_t log = ((now_.scale_log * 127) >> 7) + step;
    log = log < 0 ? 0 : log > most ? most : log;
    now_.scale_log = log;
    const int32_t mantissa = antilog[(log >> 6) & 31];
    const int32_t shift = shift_base - (log >> 11);
    now_.scale = (shift < 0 ? mantissa << -shift : mantissa >> shift) << 2;
  }

  void adapt(int32_t difference) {
    // RECONS, PARREC
    const int32_t rebuilt = sat16(now_.estimate + difference);
    const int32_t part = sat16(now_.zero_part + difference);

    // UPPOL2, UPPOL1: signs of the partially reconstructed signal steer the poles. All ones where they differ.
    const int32_t unlike1 = (part ^ now_.partial[0]) >> 31;
    const int32_t unlike2 = (part ^ now_.partial[1]) >> 31;
    const int32_t four_a1 = sat16(now_.pole[0] * 4);
    int32_t w = (~four_a1 ^ unlike1) - ~unlike1;
    if (w > 32767) w = 32767;
    int32_t a2 = ((128 ^ unlike2) - unlike2) + (w >> 7) + ((now_.pole[1] * 32512) >> 15);
    a2 = a2 > 12288 ? 12288 : a2 < -12288 ? -12288 : a2;
    int32_t a1 = ((192 ^ unlike1) - unlike1) + ((now_.pole[0] * 32640) >> 15);
    const int32_t bound = sat16(15360 - a2);
    a1 = a1 > bound ? bound : a1 < -bound ? -bound : a1;

    // FILTEP, FILTEZ, PREDIC
    const int32_t p1 = (a1 * sat16(rebuilt * 2)) >> 15;
    const int32_t p2 = (a2 * sat16(now_.reconstructed * 2)) >> 15;
    now_.zero_part = sat16(zeros_.adapt(difference));
    now_.estimate = sat16(sat16(p1 + p2) + now_.zero_part);

    // DELAYA
    now_.partial[1] = now_.partial[0];
    now_.partial[0] = part;
    now_.reconstructed = rebuilt;
    now_.pole[0] = a1;
    now_.pole[1] = a2;
  }

  G722Band now_;
  G722Zeros zeros_;
};

/** QUANTL: how many decision levels, scaled by DETL, a magnitude reaches; 1 for none. */
inline int32_t level_of(int32_t magnitude, int32_t scale) {
#if KERNEL_WIDE
  // (16 q * scale) >> 16. The levels rise, so counting those above is as good as searching; q6 ends in zeros, which are
  // never above.
  const __m128i sought = _mm_set1_epi16(static_cast<int16_t>(magnitude));
  const __m128i twice = _mm_set1_epi16(static_cast<int16_t>(2 * scale));  // up to 32,768, unsigned
  __m128i above[4];
  for (int i = 0; i < 4; i++) {
    const __m128i eight = _mm_slli_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q6 + 8 * i)), 3);
    above[i] = _mm_cmpgt_epi16(_mm_mulhi_epu16(eight, twice), sought);
  }
  const int masks[2] = {_mm_movemask_epi8(_mm_packs_epi16(above[0], above[1])),
                        _mm_movemask_epi8(_mm_packs_epi16(above[2], above[3]))};
  return levels + 1 - __builtin_popcount(static_cast<unsigned>(masks[0] | masks[1] << 16));
#else
  int32_t level = 1;
  while (level <= levels && magnitude >= (q6[level - 1] * scale) >> 12) level++;
  return level;
#endif
}

/** The weights of both halves of the filter bank against interleaved samples: `sign` is that of the taps at even
 * places. */
struct BankTaps {
  int16_t tap[g722_qmf_taps] = {};
  constexpr BankTaps(int even, int odd) {
    for (size_t i = 0; i < 12; i++) {
      tap[2 * i] = static_cast<int16_t>(even * qmf[i]);
      tap[2 * i + 1] = static_cast<int16_t>(odd * qmf[11 - i]);
    }
  }
};
constexpr BankTaps sum_taps(1, 1);
constexpr BankTaps difference_taps(-1, 1);
constexpr BankTaps even_taps(1, 0);
constexpr BankTaps odd_taps(0, 1);

inline int32_t bank(const int16_t* samples, const BankTaps& taps) {
  int32_t sum = 0;
  for (size_t i = 0; i < g722_qmf_taps; i++) sum += samples[i] * taps.tap[i];
  return sum;
}

inline G722Bands split(const int16_t* samples) {
  return {limit15(bank(samples, sum_taps) >> 14), limit15(bank(samples, difference_taps) >> 14)};
}

/** Pairs of samples that are taken at a time. */
constexpr size_t part = 160;
constexpr size_t past = g722_qmf_taps - 2;

}  // namespace

G722Bands g722_split(const int16_t* samples) { return split(samples); }

G722Encoder::G722Encoder() {
  lower_.scale = 32;
  higher_.scale = 8;
}

void G722Encoder::encode(const int16_t* pcm, size_t count, uint8_t* out) {
  Band lower(lower_);
  Band higher(higher_);
  int16_t heard[past + 2 * part];
  std::memcpy(heard, history_, sizeof history_);
  for (size_t pairs = count / 2; pairs > 0;) {
    const size_t taken = pairs < part ? pairs : part;
    std::memcpy(heard + past, pcm, 2 * taken * sizeof(int16_t));
    for (size_t i = 0; i < taken; i++) {
      const auto [low, high] = split(heard + 2 * i);

      const int32_t error_low = sat16(low - lower.estimate());
      const int32_t sign = error_low >> 31;
      const int32_t code_low = lower_code[-sign][level_of(error_low ^ sign, lower.scale())];
      lower.lower_update(code_low >> 2);

      // QUANTH
      const int32_t error_high = sat16(high - higher.estimate());
      const int32_t size = error_high ^ (error_high >> 31);
      const int32_t inner = size < (564 * higher.scale()) >> 12 ? 1 : 0;
      const int32_t code_high = (error_high < 0 ? 0 : 2) + inner;
      higher.higher_update(code_high);

      out[i] = static_cast<uint8_t>(code_high << 6 | code_low);
    }
    std::memmove(heard, heard + 2 * taken, past * sizeof(int16_t));
    pcm += 2 * taken;
    out += taken;
    pairs -= taken;
  }
  std::memcpy(history_, heard, sizeof history_);
  lower.save(lower_);
  higher.save(higher_);
}

G722Decoder::G722Decoder() {
  lower_.scale = 32;
  higher_.scale = 8;
}

void G722Decoder::decode(const uint8_t* in, size_t count, int16_t* pcm) {
  Band lower(lower_);
  Band higher(higher_);
  int16_t said[past + 2 * part];  // sum and difference of the bands
  std::memcpy(said, history_, sizeof history_);
  while (count > 0) {
    const size_t taken = count < part ? count : part;
    for (size_t i = 0; i < taken; i++) {
      const int32_t code_low = in[i] & 0x3f;
      const int32_t code_high = in[i] >> 6;
      const int32_t low = limit15(lower.estimate() + ((lower.scale() * lower_out6[code_low]) >> 15));
      lower.lower_update(code_low >> 2);
      const int32_t high = limit15(higher.estimate() + ((higher.scale() * higher_out[code_high]) >> 15));
      higher.higher_update(code_high);
      said[past + 2 * i] = static_cast<int16_t>(low + high);
      said[past + 2 * i + 1] = static_cast<int16_t>(low - high);
    }
    for (size_t i = 0; i < taken; i++) {
      pcm[2 * i] = static_cast<int16_t>(sat16(bank(said + 2 * i, odd_taps) >> 11));
      pcm[2 * i + 1] = static_cast<int16_t>(sat16(bank(said + 2 * i, even_taps) >> 11));
    }
    std::memmove(said, said + 2 * taken, past * sizeof(int16_t));
    in += taken;
    pcm += 2 * taken;
    count -= taken;
  }
  std::memcpy(history_, said, sizeof history_);
  lower.save(lower_);
  higher.save(higher_);
}

}  // namespace sidetone
