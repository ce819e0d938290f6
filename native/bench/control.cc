// Timers that do nothing else, one on each of two cores, above every other thread: how late the machine itself is.
// control SECONDS
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "bench/control_timer.h"

using namespace sidetone::bench;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "control SECONDS\n");
    return 2;
  }
  const int other = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0;
  ControlTimers timers(0, other);
  timers.counting = true;
  sleep_until(clock_ns(CLOCK_MONOTONIC) + std::atoll(argv[1]) * 1'000'000'000);
  timers.stop();
  for (int i = 0; i < 2; i++) {
    const Lateness& lateness = timers[i].lateness;
    std::printf("%s timer on core %d: p99.9 %.2f ms, most %.2f ms; over 2 ms %llu of %llu\n",
                timers.permitted() ? "real-time" : "ordinary", i == 0 ? 0 : other, lateness.at_ms(0.999),
                static_cast<double>(lateness.most_ns) / 1e6, static_cast<unsigned long long>(lateness.over(2'000'000)),
                static_cast<unsigned long long>(lateness.count));
  }
  return 0;
}
