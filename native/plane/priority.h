// The scheduling priority of a plane's thread. A plane works a few milliseconds of every 20
// and then sleeps; under the ordinary policy a neighbour that computes without end takes every second millisecond from
// it, and ticks come late by tens of them. So the thread asks for round robin, lowest of the real-time policies, or
// where that is not permitted for a better niceness, or stays as it is.
//
// A plane that is busy all the time and still leaves ticks out would leave nothing to the thread that answers the API
// on the same core: it gives its standing up for a while.
#pragma once
#include <sys/types.h>

#include <cstdint>

namespace sidetone {

class Priority {
 public:
  /** The numbers are shared with src/media/native.ts. */
  enum class Level : uint32_t { ordinary = 0, nicer = 1, real_time = 2 };

  /** Takes for the calling thread the best that the system permits. Threads that it makes are ordinary ones. */
  Level raise();
  /** Gives the priority up again. */
  void lower();
  /**
   * Leaves another thread of the process, which hangs and cannot be ended, hardly more than the time that nobody else
   * wants. It is not `SCHED_IDLE`, because the thread may hold a lock and must come to its end. Returns whether the
   * system permitted it.
   */
  static bool give_up(pid_t thread);
  /**
   * Gives up, or takes again, what `raise` took. It is called after each run of the plane, on the same thread, which
   * worked for `busy_us`, left `skipped` ticks out, and ended at `now_us` (monotonic).
   */
  void spent(int64_t busy_us, uint32_t skipped, int64_t now_us);
  Level level() const { return level_; }

  /** How long overload must last. Longer than it takes to catch up with a stall, which must not cost the priority. */
  static constexpr int64_t window_us = 5'000'000;
  static constexpr int64_t busy_max_percent = 95;
  /** How long an overloaded plane goes without its priority. */
  static constexpr int64_t rest_us = 5'000'000;

 private:
  Level level_ = Level::ordinary;
  bool wanted_ = false;
  int64_t window_start_us_ = 0;
  int64_t busy_us_ = 0;
  bool skipped_ = false;
  int64_t again_us_ = 0;  // 0: not resting
};

}  // namespace sidetone
