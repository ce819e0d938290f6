#include "plane/recording/recorder.h"

#include <algorithm>

#include "kernel/mix/mix.h"

namespace sidetone {
namespace {

constexpr int16_t silence[frame_max] = {};
/** Frames in which the disk has to make room for the silence of a long pause, else the recording fails as too slow. */
constexpr uint32_t owing_most = 200;
/** A second: the disk is written to twice in it. */
constexpr size_t reserve_frames = 50;
/** A sound that was cut off falls within a quarter of a frame: 5 ms. */
constexpr size_t ramp_divisor = 4;

/** Lays over a frame what a sound that was cut off at the sample `from` leaves. */
void let_fall(int16_t from, int16_t* frame, size_t count) {
  const size_t ramp = count / ramp_divisor;
  int16_t fall[frame_max];
  for (size_t i = 0; i < ramp; i++) fall[i] = static_cast<int16_t>(mix_fall(from, i, ramp));
  mix_over(frame, fall, ramp);
}

}  // namespace

Recorder::Recorder(const RecorderOptions& options)
    : id_(options.id),
      rate_(rate_index(options.rate_hz)),
      include_gaps_(options.include_gaps),
      voices_(options.voices),
      file_(RecordingFile::open({options.path, options.ring}, rate_table_hz[rate_], options.most_bytes)),
      voice_(options.rule) {}

void Recorder::stop() {
  stopped_ = true;
  file_->finish();
}

void Recorder::gap(uint32_t frames) {
  last_ = 0;
  if (stopped_ || !include_gaps_) return;
  owed_ += frames;
  settle();
}

/** Puts what silence is owed, as far as its file has room for it and for what comes next. */
void Recorder::settle() {
  const bool behind = owed_ > 1 || owing_ > 0;  // else it is one frame in its turn
  if (behind) owing_++;
  const size_t count = rate_samples(rate_);
  while (owed_ > 0) {
    if (behind && owing_ < owing_most && !file_->has_room(count * reserve_frames)) return;
    owed_ = file_->put(silence, count) ? owed_ - 1 : 0;
  }
  owing_ = 0;
}

void Recorder::take(const int16_t* pcm, size_t rate, bool audio, float dbov, Notices& notices) {
  if (stopped_) return;
  const bool kept = audio && !masked_;
  if (voices_) {
    const VoiceActivity::Change change = voice_.frame(kept ? dbov : -127.0f, kept);
    if (change == VoiceActivity::Change::began) {
      notices.push_back(
          {NoticeKind::speech_started, id_, spoken_ ? 0u : 1u, static_cast<uint32_t>(voice_.silence_before_ms())});
      spoken_ = true;
    } else if (change == VoiceActivity::Change::ended) {
      notices.push_back({NoticeKind::speech_ended, id_});
    }
  }
  if (!kept) {
    gap(1);
    return;
  }
  if (owed_ > 0) {
    gap(1);
    return;
  }
  bool turned = false;
  if (bridged_from_ != rate) {
    // Seldom. Its filter is its own, as a plane's bank is of one thread and a recording moves between them.
    bridge_.reset();
    if (rate != rate_)
      bridge_ = std::make_unique<RateBridge>(
          std::make_shared<const ResamplerFilter>(rate_table_hz[rate], rate_table_hz[rate_]), rate, rate_);
    bridged_from_ = rate;
    turned = true;
  }
  const size_t count = rate_samples(rate_);
  int16_t frame[frame_max];
  if (bridge_) bridge_->convert(pcm == nullptr ? silence : pcm, frame);
  else std::copy_n(pcm == nullptr ? silence : pcm, count, frame);
  if (turned) let_fall(last_, frame, count);  // what was heard at the other rate was cut off
  last_ = frame[count - 1];
  (void)file_->put(frame, count);
}

bool Recorder::over(Notices& notices) {
  const RecordingFile::State state = file_->state();
  if (state == RecordingFile::State::open) return false;
  if (!started_told_ && state != RecordingFile::State::failed) {
    started_told_ = true;
    if (file_->samples() > 0) notices.push_back({NoticeKind::recording_started, id_});
  }
  if (state == RecordingFile::State::started) return false;
  if (state == RecordingFile::State::failed) {
    stopped_ = true;
    if (!file_->closed()) return false;
    notices.push_back({NoticeKind::recording_failed, id_, static_cast<uint32_t>(file_->fault()),
                       static_cast<uint32_t>(file_->written_ms())});
    return true;
  }
  const uint64_t bytes = file_->samples() * 2 + RecordingFile::header_bytes;
  const uint32_t duration_ms = static_cast<uint32_t>(file_->samples() * 1000 / file_->rate_hz());
  notices.push_back({NoticeKind::recording_ended, id_, duration_ms, static_cast<uint32_t>(bytes)});
  return true;
}

}  // namespace sidetone
