// Timers that do nothing else, one on each of two cores, above every other thread: how late the machine itself is.
// control SECONDS
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "bench/control_timer.h"

using namespace sidetone::bench;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "control SECONDS\n");
    return 2;
  }
  sched_param above = {};
  above.sched_priority = 2;
  const bool permitted = sched_setscheduler(0, SCHED_FIFO, &above) == 0;  // the timers' threads take it over
  const int other = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0;
  std::atomic<bool> counting{true};
  std::atomic<bool> stop{false};
  Control controls[2];
  std::thread first(watch, 0, std::cref(counting), std::cref(stop), std::ref(controls[0]));
  std::thread second(watch, other, std::cref(counting), std::cref(stop), std::ref(controls[1]));
  sleep_until(clock_ns(CLOCK_MONOTONIC) + std::atoll(argv[1]) * 1'000'000'000);
  stop = true;
  first.join();
  second.join();
  for (int i = 0; i < 2; i++) {
    const Lateness& lateness = controls[i].lateness;
    std::printf("%s timer on core %d: p99.9 %.2f ms, most %.2f ms; over 2 ms %llu of %llu\n",
                permitted ? "real-time" : "ordinary", i == 0 ? 0 : other, lateness.at_ms(0.999),
                static_cast<double>(lateness.most_ns) / 1e6, static_cast<unsigned long long>(lateness.over(2'000'000)),
                static_cast<unsigned long long>(lateness.count));
  }
  return 0;
}
