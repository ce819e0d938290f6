// Threads of our own. `std::thread` throws where the system permits no more of them (a limit of a container, of a unit
// of systemd, of a user), which ends a process that is built without exceptions, with all its calls.
#pragma once
#include <pthread.h>

#include <functional>
#include <memory>
#include <utility>

namespace sidetone {

/** Begins a thread that does `work`. Returns 0, or an errno and leaves `thread` alone. */
inline int begin_thread(pthread_t& thread, std::function<void()> work) {
  using Work = std::function<void()>;
  auto own = std::make_unique<Work>(std::move(work));
  const int error = ::pthread_create(
      &thread, nullptr,
      [](void* begun) -> void* {
        const std::unique_ptr<Work> mine(static_cast<Work*>(begun));
        (*mine)();
        return nullptr;
      },
      own.get());
  if (error == 0) (void)own.release();  // it is the thread's
  return error;
}

}  // namespace sidetone
