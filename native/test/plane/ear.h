// An ear listens to a leg, and counts the frames in which something is heard.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "test/plane/bench.h"

namespace sidetone::test {

struct Ear : Listener {
  int voiced = 0;  // frames with a sample above 1,000

  void hear(const int16_t* pcm, size_t count, uint32_t, bool) override {
    voiced += std::any_of(pcm, pcm + count, [](int16_t sample) { return sample > 1000; });
  }
};

}  // namespace sidetone::test
