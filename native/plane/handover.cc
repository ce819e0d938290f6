#include "plane/handover.h"

#include <unistd.h>

#include <map>
#include <utility>

namespace sidetone {
namespace {

struct Directory {
  std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<Handover>> boxes;
  uint32_t last = 0;
};

/** One for the process, deliberately: the library's statics are shared by all its environments. Never destroyed, for
 * threads outlive main. */
Directory& directory() {
  static Directory* only = new Directory();
  return *only;
}

}  // namespace

std::shared_ptr<Handover> Handover::open(int wake_fd) {
  auto box = std::make_shared<Handover>();
  box->wake_fd_ = wake_fd;
  Directory& known = directory();
  const std::lock_guard<std::mutex> lock(known.mutex);
  box->number_ = ++known.last;
  known.boxes.emplace(box->number_, box);
  return box;
}

std::shared_ptr<Handover> Handover::find(uint32_t number) {
  Directory& known = directory();
  const std::lock_guard<std::mutex> lock(known.mutex);
  const auto found = known.boxes.find(number);
  return found == known.boxes.end() ? nullptr : found->second;
}

bool Handover::put(std::unique_ptr<Participant>& party) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (wake_fd_ < 0) return false;
  parties_.push_back(std::move(party));
  full_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
  return true;
}

std::vector<std::unique_ptr<Participant>> Handover::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  full_.store(false, std::memory_order_release);
  return std::exchange(parties_, {});
}

void Handover::shut() {
  {
    Directory& known = directory();
    const std::lock_guard<std::mutex> lock(known.mutex);
    known.boxes.erase(number_);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  wake_fd_ = -1;
  parties_.clear();
}

}  // namespace sidetone
