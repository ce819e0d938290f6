// A recorder is one recording of a leg or a room. It takes a mixed frame a tick, silences or leaves out what is masked
// or no audio, and tells what becomes of it. Its notices carry its own number where others carry a leg's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernel/tone/voice.h"
#include "plane/audio/rate.h"
#include "plane/notice.h"
#include "plane/recording/recording_file.h"

namespace sidetone {

struct RecorderOptions {
  uint32_t id = 0;
  std::string path;
  std::string ring;         // a file in memory to be made, or empty
  uint32_t rate_hz = 8000;  // of the table
  bool include_gaps = false;
  bool voices = false;
  VoiceActivity::Rule rule;
  uint64_t most_bytes = RecordingFile::bytes_max;
};

class Recorder {
 public:
  explicit Recorder(const RecorderOptions& options);
  /** Finishes the file. */
  ~Recorder() { file_->finish(); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  uint32_t id() const { return id_; }
  size_t rate() const { return rate_; }
  /** Whether it wants to know how loud a frame is. */
  bool listens() const { return voices_; }
  /** Masks what follows, or ends that. */
  void mask(bool masked) { masked_ = masked; }
  /** Ends the recording after what was taken. */
  void stop();

  /**
   * Takes one frame at a rate of the table (its index); nullptr is silence. `audio` says whether there is anything to
   * record. `dbov` is the level of the speech that is told.
   */
  void take(const int16_t* pcm, size_t rate, bool audio, float dbov, Notices& notices);
  /** Whether it still takes what it is given: it was neither stopped nor has its file failed. */
  bool taking() const { return !stopped_ && file_->state() != RecordingFile::State::failed; }
  /** Takes so many frames in which there was nothing to record. What its file has no room for is made up for in the
   * next frames, which are silent then. */
  void gap(uint32_t frames);
  /** Tells what has happened since. True when the recording is over. */
  bool over(Notices& notices);

 private:
  void settle();

  const uint32_t id_;
  const size_t rate_;
  const bool include_gaps_;
  const bool voices_;
  std::shared_ptr<RecordingFile> file_;
  VoiceActivity voice_;
  bool masked_ = false;
  bool stopped_ = false;
  bool started_told_ = false;
  bool spoken_ = false;
  uint32_t owed_ = 0;   // frames of silence that its file had no room for yet, after a pause of the whole process
  uint32_t owing_ = 0;  // frames for which it owes
  size_t bridged_from_ = rates;
  int16_t last_ = 0;  // the last sample that was put; 0 after a gap
  std::unique_ptr<RateBridge> bridge_;
};

}  // namespace sidetone
