#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plane/priority.h"

#include <sched.h>
#include <sys/resource.h>

namespace sidetone {
namespace {

constexpr int nicer = -11;  // where sound servers run
constexpr int nicest = 19;

/** `thread` 0 is the calling one. */
bool schedule(int policy, int priority, pid_t thread = 0) {
  sched_param parameters = {};
  parameters.sched_priority = priority;
  return ::sched_setscheduler(thread, policy | SCHED_RESET_ON_FORK, &parameters) == 0;
}

}  // namespace

Priority::Level Priority::raise() {
  wanted_ = true;
  again_us_ = 0;
  level_ = Level::ordinary;
  if (schedule(SCHED_RR, 1)) level_ = Level::real_time;
  // Niceness is a thread's own on Linux, and 0 means the calling thread.
  else if (schedule(SCHED_OTHER, 0) && ::setpriority(PRIO_PROCESS, 0, nicer) == 0) level_ = Level::nicer;
  return level_;
}

void Priority::lower() {
  if (level_ == Level::real_time) (void)schedule(SCHED_OTHER, 0);
  if (level_ == Level::nicer) (void)::setpriority(PRIO_PROCESS, 0, 0);
  level_ = Level::ordinary;
}

bool Priority::give_up(pid_t thread) {
  const bool ordinary = schedule(SCHED_OTHER, 0, thread);
  return ::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), nicest) == 0 && ordinary;
}

void Priority::spent(int64_t busy_us, uint32_t skipped, int64_t now_us) {
  if (again_us_ != 0) {
    if (now_us < again_us_) return;
    (void)raise();
    window_start_us_ = 0;
  }
  if (window_start_us_ == 0) {
    window_start_us_ = now_us;
    busy_us_ = 0;
    skipped_ = false;
    return;
  }
  busy_us_ += busy_us;
  skipped_ = skipped_ || skipped > 0;
  const int64_t passed_us = now_us - window_start_us_;
  if (passed_us < window_us) return;
  window_start_us_ = 0;
  if (!wanted_ || level_ == Level::ordinary || !skipped_ || busy_us_ * 100 < passed_us * busy_max_percent) return;
  lower();
  again_us_ = now_us + rest_us;
}

}  // namespace sidetone
