// Voices that are no keys: minutes of synthesized speech (espeak-ng, where it is installed) of several pitches and
// speeds.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "kernel/tone/tone.h"
#include "kernel/wav/wav.h"
#include "plane/audio/converter.h"
#include "test/check.h"

using namespace sidetone;

namespace {

constexpr char text[] =
    "Please leave your name and number after the tone. The seven zealous engineers measured nineteen hundred and "
    "ninety nine samples, "
    "while the choir sang oh, ah, ee, ooh, mm, and a whistle blew. Thank you for holding; your call is number eleven "
    "in the queue. "
    "Beep, boop, bleep. We owe you an apology, Sue. Who knew the blue moon grew? Me, you, he, she and the bee agree. "
    "One two three four five six seven eight nine star hash. Alpha bravo charlie delta echo foxtrot golf hotel india "
    "juliet kilo lima mike.";

/** Speech at 8 kHz; empty when there is no synthesizer. */
std::vector<int16_t> speech(int pitch, int speed) {
  const std::string command = "espeak-ng -p " + std::to_string(pitch) + " -s " + std::to_string(speed) +
                              " --stdout \"" + text + "\" 2>/dev/null";
  std::vector<int16_t> pcm;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return pcm;
  WavReader wav;
  FilterBank filters;
  std::unique_ptr<Converter> converter;
  uint8_t bytes[4096];
  size_t count;
  while ((count = std::fread(bytes, 1, sizeof bytes, pipe)) > 0) {
    for (size_t at = 0; at < count;) {
      float samples[256];
      const WavReader::Step step =
          wav.read(bytes + at, count - at, samples, wav.state() == WavReader::State::header ? 0 : 256);
      at += step.consumed;
      if (!converter && wav.state() == WavReader::State::data)
        converter = std::make_unique<Converter>(filters.get(wav.rate_hz(), 8000));
      if (step.made > 0) {
        const size_t before = pcm.size();
        pcm.resize(before + converter->out_max(step.made));
        pcm.resize(before + converter->convert(samples, step.made, pcm.data() + before));
      }
      if (step.consumed == 0 && step.made == 0) break;
    }
  }
  ::pclose(pipe);
  return pcm;
}

}  // namespace

TEST("ten minutes of speech hold no key") {
  double seconds = 0;
  for (int pitch = 0; pitch <= 99; pitch += 9) {
    for (const int speed : {110, 230}) {
      const std::vector<int16_t> pcm = speech(pitch, speed);
      seconds += static_cast<double>(pcm.size()) / 8000;
      ToneDetector detector(8000);
      ToneDetector::Key key;
      for (size_t at = 0; at + 160 <= pcm.size(); at += 160) CHECK(!detector.process(&pcm[at], 160, key));
    }
  }
  if (seconds == 0) std::printf("  (espeak-ng is not installed: no speech was heard)\n");
  else CHECK(seconds > 600);
}
