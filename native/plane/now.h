// Time as the plane is told it: an argument everywhere, so that tests run on a clock of their own.
#pragma once
#include <cstdint>

namespace sidetone {

/** One instant on two clocks, in microseconds. Deadlines run on the monotonic one; RTCP and the kernel use the other.
 */
struct Now {
  int64_t us = 0;       // CLOCK_MONOTONIC
  int64_t wall_us = 0;  // CLOCK_REALTIME
};

/** Every leg has a tick so often. */
constexpr int64_t tick_us = 20'000;

/** The present instant. */
Now now_of_system();

}  // namespace sidetone
