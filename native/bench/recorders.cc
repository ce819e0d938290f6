// Nothing but recordings: so many of them, fed a frame of 20 ms each at every tick, their two writing threads beside.
// Prints CPU a leg and tick of each thread and how long the ticks took. Between two ticks as much memory is passed over
// as the other work of a plane passes over.
//
//   recorders RECORDINGS SECONDS FOLDER [RING_FOLDER]
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plane/priority.h"
#include "plane/recording/recorder.h"

using namespace sidetone;

namespace {

constexpr size_t other_work_bytes = 8 << 20;
constexpr int tick_us = 20'000;

int64_t now_us(clockid_t clock) {
  timespec time;
  ::clock_gettime(clock, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000 + time.tv_nsec / 1000;
}

/** Nanoseconds on a CPU of each thread, oldest first: this one, that which writes, that which makes durable. */
std::vector<long long> cpu_ns() {
  std::vector<std::pair<int, long long>> tasks_ns;
  DIR* tasks = ::opendir("/proc/self/task");
  while (const dirent* task = tasks == nullptr ? nullptr : ::readdir(tasks)) {
    if (std::atoi(task->d_name) == 0) continue;
    long long ns = 0;
    if (FILE* stat = std::fopen((std::string("/proc/self/task/") + task->d_name + "/schedstat").c_str(), "r")) {
      if (std::fscanf(stat, "%lld", &ns) == 1) tasks_ns.emplace_back(std::atoi(task->d_name), ns);
      std::fclose(stat);
    }
  }
  if (tasks != nullptr) ::closedir(tasks);
  std::sort(tasks_ns.begin(), tasks_ns.end());
  std::vector<long long> used(3);
  for (size_t i = 0; i < tasks_ns.size() && i < used.size(); i++) used[i] = tasks_ns[i].second;
  return used;
}

void sleep_until(int64_t us) {
  const timespec at = {static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {}
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const int recordings = std::atoi(arguments[1]);
  const int ticks = std::atoi(arguments[2]) * 50;
  const std::string folder = arguments[3];
  Priority priority;
  (void)priority.raise();  // as a plane
  const std::string rings = count > 4 ? arguments[4] : "";
  std::vector<std::unique_ptr<Recorder>> recorders;
  for (int i = 0; i < recordings; i++) {
    RecorderOptions options;
    options.path = folder + "/" + std::to_string(i) + ".wav";
    if (!rings.empty()) options.ring = rings + "/" + std::to_string(i) + ".ring";
    recorders.push_back(std::make_unique<Recorder>(options));
  }
  std::vector<int16_t> sound(16'000);
  for (size_t i = 0; i < sound.size(); i++) sound[i] = static_cast<int16_t>(i * 7919);
  std::vector<char> other(other_work_bytes);
  Notices notices;
  std::vector<int64_t> took;
  int64_t puts_ns = 0;
  std::vector<long long> before(3);
  const int settled = 100;  // files made, rings taken over
  int64_t next = now_us(CLOCK_MONOTONIC);
  for (int tick = 0; tick < settled + ticks; tick++) {
    for (size_t at = 0; at < other.size(); at += 64) other[at]++;
    next += tick_us;
    sleep_until(next);
    if (tick == settled) before = cpu_ns();
    const int64_t start_us = now_us(CLOCK_MONOTONIC);
    const int64_t start_cpu_us = now_us(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < recorders.size(); i++)
      recorders[i]->take(&sound[(static_cast<size_t>(tick) * 160 + i * 16) % 15'840], 0, true, -20, notices);
    if (tick < settled) continue;
    puts_ns += (now_us(CLOCK_THREAD_CPUTIME_ID) - start_cpu_us) * 1000;
    took.push_back(now_us(CLOCK_MONOTONIC) - start_us);
  }
  const std::vector<long long> after = cpu_ns();
  const auto each_us = [&](long long ns) { return static_cast<double>(ns) / ticks / recordings / 1000; };
  const double put_us = each_us(puts_ns);
  const double write_us = each_us(after[1] - before[1]);
  const double sync_us = each_us(after[2] - before[2]);
  std::sort(took.begin(), took.end());
  int failed = 0;
  for (const auto& recorder : recorders) failed += recorder->taking() ? 0 : 1;
  std::printf(
      "%.3f us a leg and tick: %.3f in the tick, %.3f written, %.3f made durable; ticks: median %.2f ms, worst %.2f "
      "ms; failed %d\n",
      put_us + write_us + sync_us, put_us, write_us, sync_us, static_cast<double>(took[took.size() / 2]) / 1000,
      static_cast<double>(took.back()) / 1000, failed);
  recorders.clear();
  ::usleep(1'500'000);  // finished by the writing threads
  return failed == 0 ? 0 : 1;
}
