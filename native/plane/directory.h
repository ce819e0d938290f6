// What the threads of a process find each other's objects by: numbers, given out once and never again.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace sidetone {

/** Every method may be called by any thread. */
template <typename T>
class Directory {
 public:
  /**
   * The one directory of the process for objects of this type. Deliberately a static: the library is loaded once for
   * all environments. It is never destroyed, because threads outlive main.
   */
  static Directory& of_process() {
    static Directory* only = new Directory();
    return *only;
  }

  /** Enters an object; returns its number, from 1 on. */
  uint32_t add(std::shared_ptr<T> object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.emplace(++last_, std::move(object));
    return last_;
  }

  /** The object of a number, or nullptr. */
  std::shared_ptr<T> find(uint32_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(number);
    return found == objects_.end() ? nullptr : found->second;
  }

  void remove(uint32_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.erase(number);
  }

 private:
  std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<T>> objects_;
  uint32_t last_ = 0;
};

}  // namespace sidetone
