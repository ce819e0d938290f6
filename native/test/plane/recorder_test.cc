// What a recording takes of a call: what is masked, held or missing, the call's rate, and where somebody speaks.
#include "plane/recording/recorder.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "plane/audio/codec.h"
#include "test/check.h"
#include "test/plane/recording_files.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

const std::vector<int16_t> quiet(frame_max, 0);

struct Tape {
  Folder folder;
  std::string path = folder.file("call.wav");
  Notices notices;
  Recorder recorder;

  explicit Tape(bool include_gaps = false, bool voices = false) : recorder(options(path, include_gaps, voices)) {}

  static RecorderOptions options(const std::string& path, bool include_gaps, bool voices) {
    RecorderOptions options;
    options.id = 7;
    options.path = path;
    options.rate_hz = 8000;
    options.include_gaps = include_gaps;
    options.voices = voices;
    options.rule = {0.5f, 100, 500};
    return options;
  }

  void take(int16_t level, int frames = 1, uint32_t rate_hz = 8000, bool audio = true) {
    const std::vector<int16_t> pcm(frame_max, level);
    for (int i = 0; i < frames; i++)
      recorder.take(pcm.data(), rate_index(rate_hz), audio, level == 0 ? -127.0f : -20.0f, notices);
  }

  /** The first sample of each frame, once the file is complete. */
  std::vector<int16_t> frames() {
    recorder.stop();
    std::vector<int16_t> all;
    if (!over(recorder, notices)) return all;
    const Wav wav = read_wav(path);
    for (size_t at = 0; wav.whole && at < wav.samples.size(); at += frame_units) all.push_back(wav.samples[at]);
    return all;
  }
};

}  // namespace

TEST("what is masked, held or missing is left out of a recording, or is silence in it where gaps are included") {
  for (const bool gaps : {false, true}) {
    Tape tape(gaps);
    tape.take(1, 2);
    tape.recorder.mask(true);
    tape.take(2, 3);
    tape.recorder.mask(false);
    tape.take(3);
    tape.take(4, 2, 8000, false);
    tape.take(0);  // silence that is audio is no gap
    tape.recorder.gap(1);
    tape.take(5);
    tape.recorder.stop();
    tape.take(6);
    tape.recorder.gap(1);
    const std::vector<int16_t> kept =
        gaps ? std::vector<int16_t>{1, 1, 0, 0, 0, 3, 0, 0, 0, 0, 5} : std::vector<int16_t>{1, 1, 3, 0, 5};
    CHECK(tape.frames() == kept);
    const Notice& last = tape.notices.back();
    CHECK(last.kind == NoticeKind::recording_ended && last.leg == 7 && last.a == kept.size() * 20 &&
          last.b == kept.size() * 320 + RecordingFile::header_bytes);
    CHECK(std::count_if(tape.notices.begin(), tape.notices.end(),
                        [](const Notice& notice) { return notice.kind == NoticeKind::recording_started; }) == 1);
  }
}

TEST("a recording of nothing is told as ended, and not as started") {
  Tape tape;
  tape.take(1, 5, 8000, false);
  CHECK(tape.frames().empty());
  CHECK(tape.notices.size() == 1 && tape.notices[0].kind == NoticeKind::recording_ended && tape.notices[0].a == 0);
}

TEST("a recording keeps its rate where the call changes codec, and nothing of an earlier stretch comes back") {
  Tape tape;
  tape.take(8000, 10, 16000);
  tape.take(0, 10);
  tape.take(0, 10, 16000);
  tape.take(4000, 10, 48000);
  tape.take(0, 10);
  tape.recorder.stop();
  CHECK(over(tape.recorder, tape.notices));
  const Wav wav = read_wav(tape.path);
  CHECK(wav.whole && wav.samples.size() == 50 * frame_units);
  CHECK(std::abs(wav.samples[8 * frame_units] - 8000) < 80 && std::abs(wav.samples[38 * frame_units] - 4000) < 40);
  // What was cut off falls within 5 ms.
  for (size_t at = 10 * frame_units + 40; at < 30 * frame_units; at++) CHECK(wav.samples[at] == 0);
}

TEST("speech is told with the silence before it, the first by itself, and none of what is masked") {
  Tape tape(false, true);
  const auto told = [&] { return std::exchange(tape.notices, {}); };
  tape.take(0, 10);
  tape.take(2000, 10);
  Notices all = told();
  CHECK(all.size() == 1 && all[0].kind == NoticeKind::speech_started && all[0].leg == 7 && all[0].a == 1);
  tape.take(0, 30);
  all = told();
  CHECK(all.size() == 1 && all[0].kind == NoticeKind::speech_ended);
  tape.recorder.mask(true);
  tape.take(2000, 50);
  tape.recorder.mask(false);
  CHECK(told().empty());
  tape.take(2000, 10);
  all = told();
  CHECK(all.size() == 1 && all[0].kind == NoticeKind::speech_started && all[0].a == 0);
  CHECK(all[0].b >= 30 * 20 && all[0].b <= 80 * 20);
  (void)tape.frames();
}
