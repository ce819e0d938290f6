// The playout of one leg takes 20 ms a tick out of the jitter buffer and makes PCM of it. It decodes once, invents
// sound for what was lost (Concealment), and lengthens or shortens by one pitch period, cross-faded, where the jitter
// buffer's plan asks for it. It exists only while someone listens to the leg.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plane/audio/codec.h"
#include "plane/cache.h"
#include "plane/leg/coded_packets.h"
#include "plane/leg/concealment.h"
#include "plane/leg/jitter_buffer.h"

namespace sidetone {

class Playout {
 public:
  explicit Playout(Codec codec) : codec_(codec), history_end_(history_units * scale()) {
    if (scale() > 1) wide_ = std::make_unique<int16_t[]>(scale() * (queue_max + history_max));
    if (!has_octets(codec)) packets_ = std::make_unique<CodedPackets>(codec);
  }

  /** Takes the payload of one packet. */
  void insert(uint32_t timestamp, const uint8_t* payload, size_t count, int64_t arrival_us) {
    if (packets_) (void)packets_->insert(jitter_, timestamp, payload, count, arrival_us);
    else (void)jitter_.insert(timestamp, payload, count, arrival_us);
  }

  JitterBuffer& jitter() { return jitter_; }
  /** Prefetches where the next audio comes to lie. */
  void fetch_audio() const {
    jitter_.fetch_audio();
    cache_fetch(history(), frame_units * sizeof(int16_t));
  }
  /** Begins anew for another source or codec. What was heard goes on as at a loss until the new sound is there, at the
   * same rate; at another one that rises from silence. Opus after another codec begins as it is. */
  void restart(Codec codec);
  /** Fills one 20 ms frame at the codec's rate; returns its samples. `heard` is false where it is silence only. */
  size_t frame(int64_t now_us, int16_t* out, bool& heard);
  /** How long after the fastest packets of the last seconds what is heard comes, with what lies ready, by the last
   * frame. */
  int64_t delay_us() const { return delay_us_; }
  /** Whether anything was heard yet. */
  bool heard() const { return voiced_; }
  /** Packets that came after they were due. */
  uint32_t late() const { return jitter_.late(); }
  uint32_t concealed_frames() const { return concealed_; }

  /** How much of this object, from its beginning on, every tick touches. */
  static constexpr std::ptrdiff_t touched_bytes = 256;

 private:
  /** 50 ms: two of the longest pitch periods and what they are compared with. */
  static constexpr size_t history_units = 400;
  static constexpr size_t history_max = 2 * history_units;  // samples at 8 kHz, as are these
  static constexpr size_t queue_max = 3 * frame_units;
  /** Frames of Opus that are made up after a voice, and after noise: a far end that sends nothing while nobody speaks
   * (DTX) tells of the noise every 400 ms. */
  static constexpr uint32_t opus_voice_frames = 10;
  static constexpr uint32_t opus_noise_frames = 25;

  int16_t* queue() { return wide_ ? wide_.get() : queue_; }
  int16_t* store() { return wide_ ? wide_.get() + queue_room() : history_; }
  const int16_t* store() const { return wide_ ? wide_.get() + queue_room() : history_; }
  size_t queue_room() const { return queue_max * scale(); }
  size_t store_room() const { return history_max * scale(); }
  bool decode(uint32_t first, const uint8_t* octets, int16_t* out, size_t units);
  bool decode_next(int16_t* out);
  bool faded() const;
  uint32_t opus_frames() const { return packets_->ended_in_noise() ? opus_noise_frames : opus_voice_frames; }
  void make_up_opus(int16_t* out, size_t units);
  void append_decoded(uint32_t first, const uint8_t* octets, size_t units);
  void begin_invention();
  void append_made_up(size_t units);
  void append_lost(size_t units);
  void append_parts();
  void lead_back(int16_t* pcm, size_t count);
  void remember(const int16_t* pcm, size_t count);
  /** One past the last real sound. */
  const int16_t* history() const { return store() + history_end_; }
  size_t pitch_lag(const int16_t* end) const;
  void shorten(size_t excess, bool search);
  void stretch();

  /** Whether the codec makes up itself what is lost. */
  bool conceals_itself() const { return codec_ == Codec::opus; }
  size_t scale() const { return codec_rate_hz(codec_) / 8000; }
  size_t samples() const { return frame_units * scale(); }

  Codec codec_;
  bool voiced_ = false;
  bool met_ = false;                       // the last invented frame ends where the next real one begins
  std::unique_ptr<int16_t[]> wide_;        // the queue and the history of a codec of more than 8 kHz
  std::unique_ptr<CodedPackets> packets_;  // of a codec that has no octets
  size_t queued_ = 0;
  int64_t delay_us_ = 0;
  uint32_t frames_ = 0;
  size_t history_end_;
  std::unique_ptr<Concealment> concealment_;  // made at the first loss
  uint32_t lost_frames_ = 0;
  uint32_t concealed_ = 0;
  JitterBuffer jitter_;
  int16_t queue_[queue_max] = {};
  // The last `history_units` before `history_end_`, which moves on until there is no room.
  int16_t history_[history_max] = {};
  Decoder decoder_;
};

}  // namespace sidetone
