#include "plane/handover.h"

#include <unistd.h>

#include <utility>

#include "plane/directory.h"
#include "plane/priority.h"

namespace sidetone {
std::shared_ptr<Handover> Handover::open(int wake_fd) {
  auto box = std::make_shared<Handover>();
  box->wake_fd_ = wake_fd;
  box->number_ = Directory<Handover>::of_process().add(box);
  return box;
}

std::shared_ptr<Handover> Handover::find(uint32_t number) { return Directory<Handover>::of_process().find(number); }

bool Handover::put(std::unique_ptr<Participant>& party) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (wake_fd_ < 0) return false;
  parties_.push_back(std::move(party));
  full_.store(true, std::memory_order_release);
  write_wake();
  return true;
}

bool Handover::wake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (wake_fd_ < 0) return false;
  write_wake();
  return true;
}

void Handover::run_by(pid_t thread) {
  const std::lock_guard<std::mutex> lock(mutex_);
  thread_ = thread;
}

bool Handover::give_up() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return thread_ != 0 && Priority::give_up(thread_);
}

/** Under the lock, with an open box: its plane closes the descriptor after `shut`. */
void Handover::write_wake() const {
  const uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

std::vector<std::unique_ptr<Participant>> Handover::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  full_.store(false, std::memory_order_release);
  return std::exchange(parties_, {});
}

void Handover::shut() {
  Directory<Handover>::of_process().remove(number_);
  const std::lock_guard<std::mutex> lock(mutex_);
  wake_fd_ = -1;
  thread_ = 0;  // once it has ended, its number may be any other thread's
  parties_.clear();
}

}  // namespace sidetone
