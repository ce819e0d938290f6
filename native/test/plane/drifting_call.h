// A call on virtual time whose far end has a clock of its own and a bad network between: what is heard, set beside what
// was said.
//
// The voice is made: a moving pitch with formants, syllables, pauses and breath noise, so that no two places of it look
// alike. Each heard frame that holds nothing invented, nor the 5 ms that lead back from it, is laid on the said one
// where it fits best; its SNR is that of the two (-10 to 35 dB, as segmental SNR is customarily bounded), frames of
// silence left out. Beside it the codec's own, of the same frames.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "plane/leg/playout.h"

namespace sidetone::test {

struct Network {
  double ppm;  // of the far end's clock
  double loss;
  double jitter_ms;           // uniform
  double tail_ms = 0;         // exponential, of this mean
  double stall_every_ms = 0;  // now and then nothing comes for `stall_ms`, then all at once
  double stall_ms = 0;
  double spike = 0;     // part of the packets that come 60 ms later than they would
  double phase_ms = 0;  // of the listener's ticks, after the first packet was sent
};

struct Heard {
  std::vector<double> delay_ms;  // of what is heard over the fastest packet, at each tick from the tenth second on
  double invented_part = 0;
  double snr_db = 0;          // mean segmental, of frames with nothing invented
  double codec_snr_db = 0;    // of the same frames, coded and decoded only
  double all_snr_db = 0;      // with the invented ones, laid where the timeline has them
  double disturbed_part = 0;  // of frames with nothing invented, those 3 dB or more below the codec's
};

/** Eleven seconds of it, said over and over. */
inline std::vector<int16_t> voice() {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 1);
  std::vector<int16_t> pcm(88'000);
  double phase = 0;
  double breath = 0;
  for (size_t i = 0; i < pcm.size(); i++) {
    const double t = static_cast<double>(i) / 8000;
    const double turn = 2 * 3.14159265358979323846;
    const double pitch_hz = 125 + 30 * std::sin(turn * 0.73 * t) + 12 * std::sin(turn * 2.9 * t + 1);
    phase += turn * pitch_hz / 8000;
    const double formants[2] = {550 + 220 * std::sin(turn * 1.7 * t), 1500 + 500 * std::sin(turn * 1.1 * t + 2)};
    double sound = 0;
    for (int harmonic = 1; harmonic * pitch_hz < 3400; harmonic++) {
      double gain = 0.02;
      for (const double formant : formants) {
        const double off = (harmonic * pitch_hz - formant) / 150;
        gain += 1 / (1 + off * off);
      }
      sound += gain / std::sqrt(harmonic) * std::sin(harmonic * phase + harmonic * harmonic);
    }
    breath = 0.4 * breath + noise(random);
    const double syllable = std::max(0.0, std::sin(turn * 2.1 * t) + 0.35 * std::sin(turn * 0.31 * t));
    const double hiss = std::max(0.0, std::sin(turn * 2.1 * t + 2.5) - 0.7);
    const double sample = 3200 * syllable * sound + 1800 * hiss * breath + 8 * noise(random);
    pcm[i] = static_cast<int16_t>(std::max(-32768.0, std::min(32767.0, sample)));
  }
  return pcm;
}

class DriftingCall {
 public:
  explicit DriftingCall(Network network)
      : network_(network), said_(voice()), octets_(said_.size()), coded_(said_.size()) {
    mulaw_encode(said_.data(), octets_.data(), said_.size());
    mulaw_decode(octets_.data(), coded_.data(), said_.size());
  }

  Heard run(double minutes) {
    const int ticks = static_cast<int>(minutes * 3000);
    for (int tick = 0; tick < ticks; tick++) {
      const int64_t now_us = start_us + static_cast<int64_t>(network_.phase_ms * 1000) + tick * 20'000LL;
      carry(now_us);
      const uint32_t invented_before = playout_->concealed_frames();
      int16_t pcm[frame_samples_max];
      bool heard = false;
      const int64_t slack_us = playout_->jitter().slack_us(now_us);
      (void)playout_->frame(now_us, pcm, heard);
      const size_t kept = static_cast<size_t>((playout_->delay_us() - slack_us) / JitterBuffer::unit_us);
      // What is invented goes behind what was queued, so it may reach into the next frame; the first 5 ms after it lead
      // back.
      Origin origin[2 * frame_units] = {};
      std::copy(rest_, rest_ + frame_units, origin);
      const auto mark = [&origin, kept](size_t units, Origin what) {
        std::fill(origin + std::min(kept, 2 * frame_units), origin + std::min(kept + units, 2 * frame_units), what);
      };
      if (playout_->concealed_frames() != invented_before) {
        mark(frame_units, Origin::invented);
        leads_back_ = true;
      } else if (leads_back_ && playout_->jitter().slack_us(now_us) < slack_us) {
        mark(40, Origin::led_back);
        leads_back_ = false;
      }
      std::copy(origin + frame_units, origin + 2 * frame_units, rest_);
      if (tick < 500) continue;
      result_.delay_ms.push_back(static_cast<double>(playout_->delay_us()) / 1000);
      const auto invented = std::count(origin, origin + frame_units, Origin::invented);
      invented_samples_ += static_cast<size_t>(invented);
      judge(pcm, invented + std::count(origin, origin + frame_units, Origin::led_back) > 0);
    }
    result_.invented_part = static_cast<double>(invented_samples_) / (160.0 * (ticks - 500));
    result_.snr_db /= std::max(1, clean_);
    result_.codec_snr_db /= std::max(1, clean_);
    result_.all_snr_db /= std::max(1, all_);
    result_.disturbed_part /= std::max(1, clean_);
    return std::move(result_);
  }

 private:
  enum class Origin : uint8_t { said, invented, led_back };

  struct Packet {
    int64_t arrival_us;
    uint32_t timestamp;
    bool operator<(const Packet& other) const {
      return arrival_us != other.arrival_us ? arrival_us > other.arrival_us : timestamp > other.timestamp;
    }
  };

  void carry(int64_t now_us) {
    while (start_us + sent_us_ <= static_cast<double>(now_us)) {
      const double late_us = uniform_(random_) * network_.jitter_ms * 1000;
      if (uniform_(random_) >= network_.loss)
        underway_.push({start_us + static_cast<int64_t>(held_back(sent_us_ + late_us)), number_ * 160});
      number_++;
      sent_us_ = number_ * 20'000.0 * (1 + network_.ppm * 1e-6);
    }
    while (!underway_.empty() && underway_.top().arrival_us <= now_us) {
      const Packet packet = underway_.top();
      underway_.pop();
      (void)playout_->jitter().insert(packet.timestamp, &octets_[packet.timestamp % octets_.size()], 160,
                                      packet.arrival_us);
    }
  }

  double held_back(double arrival_us) {
    if (network_.tail_ms > 0) arrival_us -= std::log(1 - uniform_(random_)) * network_.tail_ms * 1000;
    if (network_.spike > 0 && uniform_(random_) < network_.spike) arrival_us += 60'000;
    if (network_.stall_every_ms > 0) {
      const double since = std::fmod(arrival_us, network_.stall_every_ms * 1000);
      if (since < network_.stall_ms * 1000) arrival_us += network_.stall_ms * 1000 - since;
    }
    return arrival_us;
  }

  double energy_of_difference(const std::vector<int16_t>& with, int64_t at, const int16_t* pcm) const {
    const int64_t length = static_cast<int64_t>(with.size());
    size_t from = static_cast<size_t>((at % length + length) % length);
    double sum = 0;
    for (size_t i = 0; i < 160; i++) {
      const double d = static_cast<double>(with[from]) - pcm[i];
      sum += d * d;
      if (++from == with.size()) from = 0;
    }
    return sum;
  }

  static double snr(double signal, double noise) {
    return std::max(-10.0, std::min(35.0, 10 * std::log10((signal + 1e-9) / (noise + 1e-9))));
  }

  void judge(const int16_t* pcm, bool bent) {
    static constexpr int16_t silence[160] = {};
    static constexpr double quiet = 160 * 33.0 * 33.0;  // 60 dB below full scale
    const int64_t expected = heard_ + shift_;
    heard_ += 160;
    double noise = energy_of_difference(said_, expected, pcm);
    double signal = energy_of_difference(said_, expected, silence);
    if (bent) {
      if (signal < quiet) return;
      result_.all_snr_db += snr(signal, noise);
      all_++;
      return;
    }
    int64_t at = expected;
    if (noise * 100 > signal &&
        energy_of_difference(said_, expected, pcm) > quiet / 100) {  // under 20 dB: it may have moved
      for (int64_t moved = -reach; moved <= reach; moved++) {
        const double other = energy_of_difference(said_, expected + moved, pcm);
        if (other >= noise) continue;
        noise = other;
        at = expected + moved;
      }
      signal = energy_of_difference(said_, at, silence);
      if (noise * 30 < signal)
        shift_ += at - expected;  // a place that fits; else this frame was bent, and the next will tell
    }
    if (signal < quiet) return;
    std::vector<int16_t> plain(160);
    for (size_t i = 0; i < 160; i++) {
      const int64_t length = static_cast<int64_t>(coded_.size());
      plain[i] = coded_[static_cast<size_t>(((at + static_cast<int64_t>(i)) % length + length) % length)];
    }
    const double here = snr(signal, noise);
    const double codec = snr(signal, energy_of_difference(said_, at, plain.data()));
    result_.snr_db += here;
    result_.all_snr_db += here;
    result_.codec_snr_db += codec;
    if (here < codec - 3) result_.disturbed_part += 1;
    clean_++;
    all_++;
  }

  static constexpr int64_t start_us = 1'000'000'000;
  static constexpr int64_t reach = 1800;  // 225 ms: more than the delay is ever moved

  const Network network_;
  const std::vector<int16_t> said_;
  std::vector<uint8_t> octets_;
  std::vector<int16_t> coded_;
  std::mt19937 random_{42};
  std::uniform_real_distribution<double> uniform_{0, 1};
  std::unique_ptr<Playout> playout_ = std::make_unique<Playout>(Codec::pcmu);
  std::priority_queue<Packet> underway_;
  double sent_us_ = 0;
  uint32_t number_ = 0;
  Origin rest_[frame_units] = {};
  bool leads_back_ = false;
  int64_t heard_ = 500 * 160;
  int64_t shift_ = 0;
  size_t invented_samples_ = 0;
  int clean_ = 0;
  int all_ = 0;
  Heard result_;
};

}  // namespace sidetone::test
