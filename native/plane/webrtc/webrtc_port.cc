#include "plane/webrtc/webrtc_port.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "plane/now.h"
#include "plane/thread.h"
#include "plane/webrtc/stun.h"

namespace sidetone {
namespace {

constexpr int receive_buffer_bytes = 4 * 1024 * 1024;  // the system gives what it permits

int64_t now_us() { return now_of_system().us; }

void count_one(std::atomic<uint32_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

/** The hash of an address's host, begun with `seed` (FNV-1a, its halves folded). */
static size_t host_hash(const Address& address, uint64_t seed) {
  uint64_t hash = seed;
  const bool six = address.any.sa_family == AF_INET6;
  const uint8_t* host = six ? address.v6.sin6_addr.s6_addr : reinterpret_cast<const uint8_t*>(&address.v4.sin_addr);
  for (size_t i = 0; i < (six ? 16u : 4u); i++) hash = (hash ^ host[i]) * 0x100000001b3;
  return static_cast<size_t>(hash ^ hash >> 32);
}

size_t WebrtcPort::AddressHash::operator()(const Address& address) const { return host_hash(address, address.port()); }

std::shared_ptr<WebrtcPort> WebrtcPort::open(const Address& address, int& error, int64_t consent_us) {
  std::shared_ptr<WebrtcPort> port(new WebrtcPort());
  error = ENOTSUP;
  port->consent_us_ = consent_us;
  port->identity_ = webrtc_supported() ? DtlsIdentity::create() : nullptr;
  if (!port->identity_) return nullptr;
  error = bind_udp(address, port->fd_);
  if (error != 0) return nullptr;
  (void)::setsockopt(port->fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  port->wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  Address bound;
  bound.length = sizeof bound.v6;
  if (port->wake_fd_ < 0 || ::getsockname(port->fd_, &bound.any, &bound.length) != 0) {
    error = errno;
    return nullptr;
  }
  port->bound_port_ = bound.port();
  error = begin_thread(port->thread_, [raw = port.get()] { raw->run(); });
  if (error != 0) return nullptr;
  port->running_ = true;
  port->number_ = Directory<WebrtcPort>::of_process().add(port);
  return port;
}

WebrtcPort::~WebrtcPort() {
  stopping_ = true;
  if (running_) {
    wake();
    ::pthread_join(thread_, nullptr);
  }
  if (fd_ >= 0) ::close(fd_);
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

void WebrtcPort::wake() const {
  const uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

std::shared_ptr<WebrtcLink> WebrtcPort::open_link(IceCredentials own, const Fingerprint& expected) {
  if (open_.load() >= links_max) return nullptr;
  std::unique_ptr<DtlsEndpoint> dtls = DtlsEndpoint::create(identity_, expected);
  if (!dtls) return nullptr;
  auto link = std::make_shared<WebrtcLink>(own, std::move(dtls), now_us());
  open_++;
  give({Order::What::open, link, std::move(own)});
  return link;
}

void WebrtcPort::close_link(std::shared_ptr<WebrtcLink> link) {
  open_--;
  give({Order::What::close, std::move(link), {}});
}

void WebrtcPort::restart_link(std::shared_ptr<WebrtcLink> link, IceCredentials own) {
  give({Order::What::restart, std::move(link), std::move(own)});
}

void WebrtcPort::give(Order order) {
  {
    const std::lock_guard<std::mutex> lock(control_mutex_);
    orders_.push_back(std::move(order));
  }
  wake();
}

WebrtcCounters WebrtcPort::counters() const {
  const auto value = [](const std::atomic<uint32_t>& counter) { return counter.load(std::memory_order_relaxed); };
  WebrtcCounters all;
  all.checks = value(checks_);
  all.unknown_checks = value(unknown_);
  all.forged_checks = value(forged_);
  all.strange_packets = value(strange_);
  all.overflown_packets = value(overflown_);
  all.handshakes = value(handshakes_);
  all.failed_handshakes = value(failed_);
  all.lost_links = value(lost_);
  return all;
}

void WebrtcPort::pump() {
  if (!receive_mutex_.try_lock()) return;
  const bool control = receive();
  receive_mutex_.unlock();
  if (control) wake();
}

/** Empties the socket, to a bound. Returns whether the thread has something to do. Under `receive_mutex_`. */
bool WebrtcPort::receive() {
  bool control = false;
  uint64_t received = 0;
  for (int round = 0; round < rounds_max; round++) {
    const int count = batch_.receive(fd_);
    for (int i = 0; i < count; i++) control = sort(batch_[i]) || control;
    received += static_cast<uint64_t>(count);
    if (count < Batch::size) break;
  }
  received_.fetch_add(received, std::memory_order_relaxed);
  return (received >= crowded_visit && !crowded_.exchange(true)) || control;
}

/** Hands one datagram on. Returns whether it is for the thread. */
bool WebrtcPort::sort(const Datagram& datagram) {
  if (datagram.count == 0) return false;
  const uint8_t first = datagram.bytes[0];
  if (first >= 128 && first <= 191) {
    const auto found = by_address_.find(datagram.source);
    if (found != by_address_.end()) found->second->give(datagram);
    else count_one(strange_);
    return false;
  }
  if (first > 3 && (first < 20 || first > 63)) {
    count_one(strange_);
    return false;
  }
  const std::lock_guard<std::mutex> lock(control_mutex_);
  uint8_t& share = shares_[host_hash(datagram.source, 0) % shares_.size()];
  if (control_.entries.size() >= control_max || share >= control_share) {
    count_one(overflown_);
    return true;
  }
  share++;
  control_.bytes.insert(control_.bytes.end(), datagram.bytes, datagram.bytes + datagram.count);
  control_.entries.push_back({datagram.source, datagram.arrival_us, datagram.count});
  return true;
}

void WebrtcPort::run() {
  while (!stopping_) {
    wait();
    obey();
    const int64_t now = now_us();
    for (size_t i = 0, at = 0; i < taken_.entries.size(); i++) {
      const LinkPackets::Entry& entry = taken_.entries[i];
      Datagram datagram;
      datagram.source = entry.source;
      datagram.count = entry.count;
      datagram.bytes = taken_.bytes.data() + at;
      at += entry.count;
      serve(datagram, now);
    }
    taken_.clear();
    look(now);
  }
}

/** Waits for orders and, where no plane does it often enough, for the socket; then takes what lies ready. */
void WebrtcPort::wait() {
  const bool listens = checking_ > 0 || links_.size() > few_links || crowded_;
  pollfd waits[2] = {{wake_fd_, POLLIN, 0}, {fd_, POLLIN, 0}};
  if (listens && rests_) (void)::poll(waits, 1, rest_ms);
  const int most_ms = crowded_ || checking_ > 0 ? handshake_look_ms : links_.empty() ? -1 : look_ms;
  if (!(rests_ && (waits[0].revents & POLLIN) != 0)) (void)::poll(waits, listens ? 2 : 1, most_ms);
  uint64_t count;
  (void)!::read(wake_fd_, &count, sizeof count);
  rests_ = false;
  if (listens && (waits[1].revents & POLLIN) != 0) {
    rests_ = true;
    const std::lock_guard<std::mutex> lock(receive_mutex_);
    (void)receive();
  }
  const std::lock_guard<std::mutex> lock(control_mutex_);
  std::swap(taken_, control_);
  shares_.fill(0);
}

void WebrtcPort::obey() {
  std::vector<Order> orders;
  {
    const std::lock_guard<std::mutex> lock(control_mutex_);
    orders.swap(orders_);
  }
  for (const Order& order : orders) obey(order);
}

void WebrtcPort::obey(const Order& order) {
  const std::shared_ptr<WebrtcLink>& link = order.link;
  switch (order.what) {
    case Order::What::open:
      by_ufrag_[order.own.ufrag] = link;
      links_.push_back(link);
      checking_++;
      break;
    case Order::What::restart: {
      const std::string forgotten = link->restart(order.own);
      if (!forgotten.empty()) by_ufrag_.erase(forgotten);
      by_ufrag_[order.own.ufrag] = link;
      break;
    }
    case Order::What::close: {
      const auto found = std::find(links_.begin(), links_.end(), link);
      if (found == links_.end()) break;
      if (link->state() == LinkState::checking) checking_--;
      const Address to = link->dtls_remote();
      if (!to.empty()) link->dtls().close(sender_to(to));
      forget(*link);
      links_.erase(found);
      break;
    }
  }
}

/** Takes a link out of the directories; what comes for it is strange from now on. */
void WebrtcPort::forget(WebrtcLink& link) {
  for (const IceCredentials& own : link.own()) by_ufrag_.erase(own.ufrag);
  for (const Address& address : link.addresses()) disclaim(link, address);
}

DtlsEndpoint::Out WebrtcPort::sender_to(const Address& to) const {
  return [this, to](const uint8_t* bytes, size_t count) { (void)send_datagram(fd_, &to, bytes, count); };
}

void WebrtcPort::serve(const Datagram& datagram, int64_t now_us) {
  if (datagram.bytes[0] <= 3) serve_check(datagram, now_us);
  else serve_handshake(datagram);
}

/** Answers a connectivity check (RFC 8445 §7.3), if it names a leg and is under its password. */
void WebrtcPort::serve_check(const Datagram& datagram, int64_t now_us) {
  StunRequest request;
  if (!stun_read_request(datagram.bytes, datagram.count, request)) {
    count_one(unknown_);
    return;
  }
  const std::string ufrag(request.username.substr(0, request.username.find(':')));
  const auto found = by_ufrag_.find(ufrag);
  if (found == by_ufrag_.end()) {
    count_one(unknown_);
    return;
  }
  const std::shared_ptr<WebrtcLink> link = found->second;
  const IceCredentials* own = link->credentials(ufrag);
  const bool known = link->may_come_from(datagram.source);
  // The flood of a forger who knows the name costs no more than so many hashes; a known address is always heard.
  if (own == nullptr || (!known && !link->tolerates_forgery(now_us)) ||
      !stun_authentic(datagram.bytes, request, own->password)) {
    link->forged();
    count_one(forged_);
    return;
  }
  uint8_t out[stun_answer_max_bytes];
  size_t count;
  if (request.unknown_count > 0) {
    count = stun_write_unknown(out, request, own->password);
  } else if (request.controlled) {  // both sides cannot be controlled, and a lite side always is
    count = stun_write_role_conflict(out, request, own->password);
  } else {
    if (!claim(link, datagram.source, now_us)) {
      count_one(forged_);
      return;
    }
    const Address forgotten = link->checked(datagram.source, request.use_candidate, ufrag, now_us);
    if (!forgotten.empty()) disclaim(*link, forgotten);
    count = stun_write_success(out, request.transaction, datagram.source.plain(), own->password);
  }
  count_one(checks_);
  (void)send_datagram(fd_, &datagram.source, out, count);
}

/**
 * Gives the link what comes from an address that was checked. False where another link was heard from there a moment
 * ago: whoever holds credentials of any leg can write the address of somebody else on a check.
 */
bool WebrtcPort::claim(const std::shared_ptr<WebrtcLink>& link, const Address& from, int64_t now_us) {
  const std::lock_guard<std::mutex> lock(receive_mutex_);
  std::shared_ptr<WebrtcLink>& owner = by_address_[from];
  if (owner && owner != link && owner->owns(from, now_us)) return false;
  owner = link;
  return true;
}

/** Forgets an address, if it is the link's. Under no lock. */
void WebrtcPort::disclaim(const WebrtcLink& link, const Address& from) {
  const std::lock_guard<std::mutex> lock(receive_mutex_);
  const auto found = by_address_.find(from);
  if (found != by_address_.end() && found->second.get() == &link) by_address_.erase(found);
}

void WebrtcPort::serve_handshake(const Datagram& datagram) {
  std::shared_ptr<WebrtcLink> link;
  {
    const std::lock_guard<std::mutex> lock(receive_mutex_);
    const auto found = by_address_.find(datagram.source);
    if (found != by_address_.end()) link = found->second;
  }
  if (!link || !DtlsEndpoint::shaped(datagram.bytes, datagram.count)) {
    count_one(strange_);
    return;
  }
  const LinkState before = link->state();
  if (before != LinkState::checking && before != LinkState::connected) return;
  link->dtls().take(datagram.bytes, datagram.count, sender_to(link->dtls_remote()));
  judge(*link);
}

/** Tells the plane what has become of the handshake. */
void WebrtcPort::judge(WebrtcLink& link) {
  const LinkState before = link.state();
  const DtlsEndpoint::State now = link.dtls().state();
  if (before == LinkState::checking && now == DtlsEndpoint::State::connected) {
    link.set_state(LinkState::connected);
    count_one(handshakes_);
  } else if (now == DtlsEndpoint::State::closed) {
    link.set_state(LinkState::closed);
  } else if (now == DtlsEndpoint::State::failed) {
    link.set_state(LinkState::failed);
    count_one(failed_);
  }
  if (before == LinkState::checking && link.state() != LinkState::checking) checking_--;
}

/** Leaves the socket to the planes again, once no more comes than they can take. */
void WebrtcPort::look_at_crowd(int64_t span_us) {
  const uint64_t received = received_.load(std::memory_order_relaxed);
  const uint64_t most = crowded_a_second * static_cast<uint64_t>(span_us) / 1'000'000;
  if (looked_crowded_ && received - looked_received_ < most) crowded_ = false;
  looked_received_ = received;
  looked_crowded_ = crowded_;
}

/** Sends flights again that nobody answered, turns from silent addresses, and ends links that are unheard. */
void WebrtcPort::look(int64_t now_us) {
  if (now_us - looked_us_ < handshake_look_ms * 1000) return;
  look_at_crowd(now_us - looked_us_);
  looked_us_ = now_us;
  for (const std::shared_ptr<WebrtcLink>& link : links_) {
    const LinkState state = link->state();
    if (state != LinkState::checking && state != LinkState::connected) continue;
    if (state == LinkState::checking) {
      const Address to = link->dtls_remote();
      if (!to.empty()) link->dtls().due(sender_to(to));
      judge(*link);
    }
    if (now_us - link->look(now_us) < consent_us_) continue;
    if (link->state() == LinkState::checking) checking_--;
    link->set_state(LinkState::lost);
    count_one(lost_);
  }
}

}  // namespace sidetone
