// Who answered, by the detector of the media plane: answers TIMEOUT_MS FILE... reads calls as 16-bit PCM of 8 kHz,
// passes each through mu-law as a trunk would, and prints a line for each: the verdict, its time in ms, the end of the
// greeting in ms and whether it had a beep; -1 for what was not told. The last line is the time of one frame.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/pcm_file.h"
#include "kernel/answer/answer_detector.h"
#include "kernel/codec/g711.h"

using namespace sidetone;

namespace {

constexpr size_t frame_samples = 160;
constexpr const char* names[] = {"unknown", "human", "machine"};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "answers TIMEOUT_MS FILE...\n");
    return 2;
  }
  std::chrono::nanoseconds spent{0};
  uint64_t frames = 0;
  for (int i = 2; i < argc; i++) {
    const std::vector<int16_t> call = bench::read_pcm(argv[i]);
    AnswerDetector detector(static_cast<uint32_t>(std::atoi(argv[1])));
    const char* verdict = "none";
    int after_ms = -1;
    int ended_ms = -1;
    int beep = -1;
    for (size_t at = 0; at + frame_samples <= call.size() && !detector.over(); at += frame_samples) {
      uint8_t octets[frame_samples];
      int16_t pcm[frame_samples];
      mulaw_encode(&call[at], octets, frame_samples);
      mulaw_decode(octets, pcm, frame_samples);
      const auto begun = std::chrono::steady_clock::now();
      const AnswerDetector::Step step = detector.frame(pcm, frame_samples, true);
      spent += std::chrono::steady_clock::now() - begun;
      frames++;
      if (step.decided) {
        verdict = names[static_cast<size_t>(step.answerer)];
        after_ms = static_cast<int>(detector.clock_ms());
      }
      if (!step.greeting_ended) continue;
      ended_ms = static_cast<int>(detector.clock_ms());
      beep = step.beep ? 1 : 0;
    }
    std::printf("%s %d %d %d\n", verdict, after_ms, ended_ms, beep);
  }
  std::printf("%.0f ns a frame\n", static_cast<double>(spent.count()) / static_cast<double>(frames > 0 ? frames : 1));
  return 0;
}
