// What the far ends of the media benches share: clocks, how late things are, and timers that do nothing else, which
// tell how late the machine itself is.
#pragma once
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

namespace sidetone::bench {

/** Seldom: where a timer is an exit to a host, a wake of it costs those it interrupts half a millisecond. */
inline constexpr int64_t control_ns = 10'000'000;
/** Longer than any system call of the engine, in which a kernel without preemption lets nobody else run. */
inline constexpr int64_t stall_least_ns = 15'000'000;
inline constexpr size_t stalls_max = 1'000'000;

inline int64_t clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

inline void sleep_until(int64_t at_ns) {
  const timespec deadline = {at_ns / 1'000'000'000, at_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) != 0) {}
}

inline sockaddr_in loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/** Lateness in steps of 10 us, to ten seconds. */
struct Lateness {
  std::vector<uint64_t> steps = std::vector<uint64_t>(1'000'000);
  uint64_t count = 0;
  int64_t most_ns = 0;

  void add(int64_t ns) {
    ns = std::max<int64_t>(ns, 0);
    steps[static_cast<size_t>(std::min<int64_t>(ns / 10'000, static_cast<int64_t>(steps.size()) - 1))]++;
    most_ns = std::max(most_ns, ns);
    count++;
  }
  double at_ms(double part) const {
    uint64_t left = static_cast<uint64_t>(part * static_cast<double>(count));
    for (size_t i = 0; i < steps.size(); i++) {
      if (steps[i] > left) return static_cast<double>(i) / 100;
      left -= steps[i];
    }
    return static_cast<double>(most_ns) / 1e6;
  }
  uint64_t over(int64_t ns) const {
    uint64_t sum = 0;
    for (size_t i = static_cast<size_t>(ns / 10'000); i < steps.size(); i++) sum += steps[i];
    return sum;
  }
  void print(const char* name) const {
    std::printf("%-28s median %7.2f  p99 %7.2f  p99.9 %7.2f  most %7.2f ms; over 5 ms %llu of %llu\n", name, at_ms(0.5),
                at_ms(0.99), at_ms(0.999), static_cast<double>(most_ns) / 1e6,
                static_cast<unsigned long long>(over(5'000'000)), static_cast<unsigned long long>(count));
  }
};

struct Span {
  int64_t from_ns;
  int64_t to_ns;
};

/** What one timer saw. */
struct Control {
  Lateness lateness;
  std::vector<Span> stalls;  // in order

  int64_t stalled_ns(const Span& within) const {
    auto at = std::lower_bound(stalls.begin(), stalls.end(), within.from_ns,
                               [](const Span& stall, int64_t ns) { return stall.to_ns < ns; });
    int64_t sum = 0;
    for (; at != stalls.end() && at->from_ns < within.to_ns; at++) {
      sum += std::max<int64_t>(0, std::min(at->to_ns, within.to_ns) - std::max(at->from_ns, within.from_ns));
    }
    return sum;
  }
};

/** A timer on `core` until `stop`; counted from `counting` on. */
inline void watch(int core, const std::atomic<bool>& counting, const std::atomic<bool>& stop, Control& control) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  (void)pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
  for (int64_t at_ns = clock_ns(CLOCK_MONOTONIC); !stop; at_ns += control_ns) {
    sleep_until(at_ns);
    const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (counting) control.lateness.add(now_ns - at_ns);
    if (now_ns - at_ns < stall_least_ns) continue;
    if (control.stalls.size() < stalls_max) control.stalls.push_back({at_ns, now_ns});
    at_ns += (now_ns - at_ns) / control_ns * control_ns;  // one stall is one lateness
  }
}

/** Two timers on cores of their own, above every other thread where that is permitted; so is the caller then. */
class ControlTimers {
 public:
  ControlTimers(int core, int other)
      : permitted_(rise()),
        threads_{std::thread(watch, core, std::cref(counting), std::cref(stop_), std::ref(controls_[0])),
                 std::thread(watch, other, std::cref(counting), std::cref(stop_), std::ref(controls_[1]))} {}

  /** Ends both; what they saw is read afterwards. */
  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  bool permitted() const { return permitted_; }
  const Control& operator[](size_t i) const { return controls_[i]; }

  /** Whether what they see counts. */
  std::atomic<bool> counting{false};

 private:
  static bool rise() {
    sched_param above = {};
    above.sched_priority = 2;
    return sched_setscheduler(0, SCHED_FIFO, &above) == 0;  // threads that are started later take it over
  }

  std::atomic<bool> stop_{false};
  Control controls_[2];
  bool permitted_;
  std::thread threads_[2];
};

}  // namespace sidetone::bench
