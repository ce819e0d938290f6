// A handover box holds a participant while it moves from one plane to another. Each plane runs in a thread of its own.
// The box is the only thing they share, and it is opened between ticks only. The planes of a process find each other's
// boxes by number (directory.h).
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "plane/participant.h"

namespace sidetone {

class Handover {
 public:
  /** A box that writes to `wake_fd` when something is put in. */
  static std::shared_ptr<Handover> open(int wake_fd);
  /** The box of a number, or nullptr. */
  static std::shared_ptr<Handover> find(uint32_t number);

  uint32_t number() const { return number_; }
  /** Puts a party into the box. Returns false, with `party` untouched, when the box is shut. */
  bool put(std::unique_ptr<Participant>& party);
  /** Ends the sleep of the plane, from any thread. False when its box is shut: the descriptor may be another file's. */
  bool wake();
  /** Tells which thread runs the plane (gettid(2)). */
  void run_by(pid_t thread);
  /** Lowers the priority of the thread that runs the plane (priority.h). False when there is none, or it may not. */
  bool give_up();
  /** Takes out all that was put in. */
  std::vector<std::unique_ptr<Participant>> take();
  bool empty() const { return !full_.load(std::memory_order_acquire); }
  /** Ends the box with its plane. What lies in it is destroyed. */
  void shut();

 private:
  void write_wake() const;

  std::mutex mutex_;
  std::atomic<bool> full_{false};
  std::vector<std::unique_ptr<Participant>> parties_;
  int wake_fd_ = -1;
  pid_t thread_ = 0;
  uint32_t number_ = 0;
};

}  // namespace sidetone
