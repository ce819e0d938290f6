#include "plane/webrtc/webrtc_link.h"

#include <algorithm>
#include <utility>

namespace sidetone {

WebrtcLink::WebrtcLink(IceCredentials own, std::unique_ptr<DtlsEndpoint> dtls, int64_t now_us)
    : dtls_(std::move(dtls)), opened_us_(now_us) {
  own_.push_back(std::move(own));
}

Address WebrtcLink::remote(uint32_t& version) const {
  const std::lock_guard<std::mutex> lock(remote_mutex_);
  version = remote_version_.load(std::memory_order_relaxed);
  return remote_;
}

void WebrtcLink::take(LinkPackets& packets) {
  packets.clear();
  const std::lock_guard<std::mutex> lock(packets_mutex_);
  std::swap(packets, packets_);
  waiting_.store(false, std::memory_order_release);
}

void WebrtcLink::give(const Datagram& datagram) {
  const std::lock_guard<std::mutex> lock(packets_mutex_);
  if (packets_.entries.size() >= packets_max || packets_.bytes.size() + datagram.count > packet_bytes_max) {
    overflown_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  packets_.bytes.insert(packets_.bytes.end(), datagram.bytes, datagram.bytes + datagram.count);
  packets_.entries.push_back({datagram.source, datagram.arrival_us, datagram.count});
  waiting_.store(true, std::memory_order_release);
}

const IceCredentials* WebrtcLink::credentials(std::string_view ufrag) const {
  for (const IceCredentials& own : own_) {
    if (own.ufrag == ufrag) return &own;
  }
  return nullptr;
}

/** The path of an address, or nullptr. Under `remote_mutex_`. */
WebrtcLink::Path* WebrtcLink::path(const Address& from) {
  for (Path& path : paths_) {
    if (path.address == from) return &path;
  }
  return nullptr;
}

void WebrtcLink::hear(const Address& from, int64_t now_us) {
  if (from == media_from_ && now_us - media_us_ < hear_every_us) return;
  media_from_ = from;
  media_us_ = now_us;
  const std::lock_guard<std::mutex> lock(remote_mutex_);
  Path* const heard = path(from);
  if (heard != nullptr) heard->heard_us = std::max(heard->heard_us, now_us);
}

Address WebrtcLink::checked(const Address& from, bool nominated, std::string_view ufrag, int64_t now_us) {
  Address forgotten;
  const std::lock_guard<std::mutex> lock(remote_mutex_);
  Path* checked = path(from);
  if (checked == nullptr && paths_.size() < addresses_max) {
    checked = &paths_.emplace_back();
  } else if (checked == nullptr) {
    for (Path& path : paths_) {
      const bool older = checked == nullptr || path.heard_us < checked->heard_us;
      if (older && path.address != remote_) checked = &path;
    }
    forgotten = checked->address;
  }
  *checked = {from, now_us};
  // A check under older credentials than are in use is of before the restart: it keeps the path alive and moves
  // nothing.
  const auto named = [&](const IceCredentials& own) { return own.ufrag == ufrag; };
  const auto under = static_cast<size_t>(std::find_if(own_.begin(), own_.end(), named) - own_.begin());
  const bool current = under >= used_ && under < own_.size();
  if (current) used_ = under;
  if ((nominated && current && remote_ != from) || remote_.empty()) send_to(from);
  return forgotten;
}

/** Media goes to another address. Under `remote_mutex_`. */
void WebrtcLink::send_to(const Address& remote) {
  remote_ = remote;
  remote_version_.fetch_add(1, std::memory_order_release);
}

int64_t WebrtcLink::look(int64_t now_us) {
  const std::lock_guard<std::mutex> lock(remote_mutex_);
  const Path* used = path(remote_);
  if (used == nullptr) return opened_us_;
  if (now_us - used->heard_us < silence_us) return used->heard_us;
  const Path* last = used;
  for (const Path& path : paths_) {
    if (path.heard_us > last->heard_us) last = &path;
  }
  if (last != used && now_us - last->heard_us < silence_us) {
    send_to(last->address);
    used = last;
  }
  return used->heard_us;
}

bool WebrtcLink::may_come_from(const Address& from) const {
  const std::lock_guard<std::mutex> lock(remote_mutex_);
  return std::any_of(paths_.begin(), paths_.end(), [&](const Path& path) { return path.address == from; });
}

bool WebrtcLink::owns(const Address& from, int64_t now_us) const {
  const LinkState now = state();
  if (now != LinkState::checking && now != LinkState::connected) return false;
  const std::lock_guard<std::mutex> lock(remote_mutex_);
  return std::any_of(paths_.begin(), paths_.end(),
                     [&](const Path& path) { return path.address == from && now_us - path.heard_us < owned_us; });
}

std::vector<Address> WebrtcLink::addresses() const {
  std::vector<Address> all;
  const std::lock_guard<std::mutex> lock(remote_mutex_);
  for (const Path& path : paths_) all.push_back(path.address);
  return all;
}

bool WebrtcLink::tolerates_forgery(int64_t now_us) {
  if (now_us - window_us_ >= 1'000'000) {
    window_us_ = now_us;
    forged_in_window_ = 0;
  }
  return forged_in_window_ < forged_a_second_max;
}

std::string WebrtcLink::restart(IceCredentials own) {
  std::string forgotten;
  if (own_.size() > 1) {
    const auto unused = own_.begin() + (used_ == 0 ? 1 : 0);
    forgotten = unused->ufrag;
    own_.erase(unused);
    used_ = 0;
  }
  own_.push_back(std::move(own));
  return forgotten;
}

Address WebrtcLink::dtls_remote() const {
  const std::lock_guard<std::mutex> lock(remote_mutex_);
  return remote_;
}

}  // namespace sidetone
