#include "plane/priority.h"

#include <sched.h>
#include <sys/resource.h>

#include <thread>

#include "test/check.h"

using namespace sidetone;

namespace {

/** What the system says the calling thread is. */
Priority::Level standing() {
  if ((::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_RR) return Priority::Level::real_time;
  return ::getpriority(PRIO_PROCESS, 0) < 0 ? Priority::Level::nicer : Priority::Level::ordinary;
}

constexpr int64_t second = 1'000'000;

}  // namespace

// Each on a thread of its own, so that what it takes ends with it.

TEST("a plane's thread gets what the system permits, says what it got, and the threads it makes are ordinary") {
  Priority::Level got = Priority::Level::ordinary;
  Priority::Level told = Priority::Level::ordinary;
  Priority::Level child = Priority::Level::real_time;
  Priority::Level after = Priority::Level::real_time;
  std::thread([&] {
    Priority priority;
    told = priority.raise();
    got = standing();
    std::thread([&] { child = standing(); }).join();
    priority.lower();
    after = standing();
  }).join();
  CHECK(told == got);
  CHECK(child == Priority::Level::ordinary);
  CHECK(after == Priority::Level::ordinary);
}

TEST("a plane that does not keep up is an ordinary one for five seconds, a busy one is not") {
  Priority::Level first = Priority::Level::ordinary;
  Priority::Level busy = Priority::Level::ordinary;
  Priority::Level overloaded = Priority::Level::real_time;
  Priority::Level resting = Priority::Level::real_time;
  Priority::Level again = Priority::Level::ordinary;
  std::thread([&] {
    Priority priority;
    first = priority.raise();
    int64_t now_us = 100 * second;
    const auto pass = [&](int64_t for_us, int64_t busy_us, uint32_t skipped) {
      for (const int64_t end_us = now_us + for_us; now_us < end_us;) priority.spent(busy_us, skipped, now_us += 20'000);
    };
    pass(11 * second, 20'000, 0);  // hardly keeps up, and does
    pass(20'000, 17'000, 30);      // a long stall, which it catches up with
    pass(2 * second, 20'000, 0);
    pass(9 * second, 17'000, 0);
    busy = standing();
    for (int i = 0; i < 600 && standing() != Priority::Level::ordinary; i++)
      pass(20'000, 20'000, 1);  // two windows and more
    overloaded = standing();
    pass(4 * second, 20'000, 1);
    resting = standing();
    pass(2 * second, 10'000, 0);
    again = standing();
  }).join();
  CHECK(busy == first);
  CHECK(overloaded == Priority::Level::ordinary);
  CHECK(resting == Priority::Level::ordinary);
  CHECK(again == first);
}
