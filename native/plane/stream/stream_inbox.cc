#include "plane/stream/stream_inbox.h"

#include <algorithm>
#include <cstring>

#include "plane/directory.h"

namespace sidetone {
std::pair<uint32_t, std::shared_ptr<StreamInbox>> StreamInbox::open() {
  auto box = std::make_shared<StreamInbox>();
  return {Directory<StreamInbox>::of_process().add(box), box};
}

std::shared_ptr<StreamInbox> StreamInbox::find(uint32_t number) {
  return Directory<StreamInbox>::of_process().find(number);
}

void StreamInbox::close(uint32_t number) { Directory<StreamInbox>::of_process().remove(number); }

bool StreamInbox::write(const uint8_t* bytes, size_t count, size_t most) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queued_ >= most) return false;
    if (count == 0 || append(bytes, count)) return true;
  }
  std::vector<uint8_t> block;
  block.reserve(std::max(count, block_least_bytes));
  block.insert(block.end(), bytes, bytes + count);
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_.push_back(std::move(block));
  queued_ += count;
  return true;
}

/** Lays bytes into the last block, where that has room for them. Under the lock. */
bool StreamInbox::append(const uint8_t* bytes, size_t count) {
  if (blocks_.empty()) return false;
  std::vector<uint8_t>& last = blocks_.back();
  if (last.capacity() - last.size() < count) return false;
  last.insert(last.end(), bytes, bytes + count);
  queued_ += count;
  return true;
}

void StreamInbox::clear() {
  std::deque<std::vector<uint8_t>> dropped;  // freed after the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  passed_ += static_cast<uint32_t>(queued_);
  cleared_ = cleared_ || queued_ > 0;
  queued_ = 0;
  head_ = 0;
  dropped.swap(blocks_);
}

bool StreamInbox::was_cleared() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(cleared_, false);
}

void StreamInbox::pause(bool on) {
  const std::lock_guard<std::mutex> lock(mutex_);
  paused_ = on;
}

size_t StreamInbox::take(uint8_t* out, size_t count, size_t unit) {
  std::vector<uint8_t> spent;  // the last block that was used up, freed after the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  if (paused_) return 0;
  size_t wanted = std::min(count, queued_);
  wanted -= wanted % unit;
  size_t got = 0;
  while (got < wanted) {
    std::vector<uint8_t>& block = blocks_.front();
    const size_t part = std::min(wanted - got, block.size() - head_);
    std::memcpy(out + got, block.data() + head_, part);
    got += part;
    head_ += part;
    if (head_ < block.size()) continue;
    spent = std::move(block);
    blocks_.pop_front();
    head_ = 0;
  }
  queued_ -= got;
  passed_ += static_cast<uint32_t>(got);
  return got;
}

size_t StreamInbox::queued() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queued_;
}

uint32_t StreamInbox::passed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return passed_;
}

}  // namespace sidetone
