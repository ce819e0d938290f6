// What a WebRTC leg costs beside a plain one: G.711, rooms of ten, everyone talks. The planes take turns in rounds, so
// that both meet the same machine. The far ends run in a thread of their own, which is not counted; all else of the
// process is, the thread of the WebRTC port among it.
//
//   webrtc [legs] [rounds]   prints a line a round and the ratio of the medians
#include <openssl/ssl.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "plane/plane.h"
#include "plane/webrtc/stun.h"
#include "plane/webrtc/webrtc_port.h"
#include "test/plane/loopback.h"
#include "test/plane/webrtc_client.h"

using namespace sidetone;

namespace {

constexpr int round_ticks = 150;
constexpr size_t room_legs = 10;

int64_t cpu_us(clockid_t clock) {
  timespec at;
  (void)::clock_gettime(clock, &at);
  return at.tv_sec * int64_t{1'000'000} + at.tv_nsec / 1000;
}

/** One far end: a socket, and the keys under which it speaks, if any. */
struct FarEnd {
  test::UdpSocket socket;
  Address to;
  std::unique_ptr<SrtpSession> cipher;
  uint16_t sequence = 0;
  uint32_t timestamp = 0;

  void say() {
    alignas(8) uint8_t packet[rtp_header_bytes + frame_units + srtp_overhead_bytes];
    rtp_write_header(packet, false, 0, sequence++, timestamp, 77);
    timestamp += frame_units;
    for (size_t i = 0; i < frame_units; i++) packet[rtp_header_bytes + i] = static_cast<uint8_t>(i * 7 + sequence);
    size_t count = rtp_header_bytes + frame_units;
    if (cipher && !cipher->protect(packet, count)) return;
    (void)send_datagram(socket.fd(), &to, packet, count);
  }
  size_t hear() const {
    size_t packets = 0;
    uint8_t bytes[2000];
    while (::recv(socket.fd(), bytes, sizeof bytes, MSG_DONTWAIT) > 0) packets++;
    return packets;
  }
};

/** A plane with its legs in rooms. */
struct Side {
  std::unique_ptr<Plane> plane;
  std::vector<std::unique_ptr<FarEnd>> ends;

  Side() {
    int error = 0;
    plane = Plane::create(60'000'000, error);
  }
  Negotiated terms(const FarEnd& end) const {
    Negotiated agreed;
    agreed.rtp = end.socket.here();
    agreed.rtcp = test::nowhere();
    return agreed;
  }
  void seat() {
    for (size_t i = 0; i < ends.size(); i++) {
      const uint32_t room = 100'000 + static_cast<uint32_t>(i / room_legs);
      (void)plane->open_room(room);
      (void)plane->join(static_cast<uint32_t>(i) + 1, room, false, 100, 100);
    }
  }
};

bool open_plain(Side& side, size_t legs) {
  uint16_t port = test::first_port;
  for (size_t i = 0; i < legs; i++) {
    auto end = std::make_unique<FarEnd>();
    for (;; port = static_cast<uint16_t>(port + 2)) {
      if (port >= test::last_port) return false;
      end->to = test::own(port);
      if (side.plane->open(static_cast<uint32_t>(i) + 1, end->to, test::own(static_cast<uint16_t>(port + 1))) == 0)
        break;
    }
    (void)side.plane->negotiate(static_cast<uint32_t>(i) + 1, side.terms(*end), now_of_system());
    side.ends.push_back(std::move(end));
  }
  return true;
}

/** Opens the legs and shakes hands, one after the other. */
bool open_webrtc(Side& side, const std::shared_ptr<WebrtcPort>& port, size_t legs) {
  for (size_t i = 0; i < legs; i++) {
    auto end = std::make_unique<FarEnd>();
    end->to = test::own(port->bound_port());
    test::DtlsClient client;
    const std::string name = "leg" + std::to_string(10'000 + i);
    const uint32_t id = static_cast<uint32_t>(i) + 1;
    if (side.plane->open_webrtc(id, id, port, {name, "a password of a leg"}, client.fingerprint) != 0) return false;
    (void)side.plane->negotiate(id, side.terms(*end), now_of_system());
    ::poll(nullptr, 0, 1);
    end->socket.send(end->to, test::check(name, "a password of a leg", true));
    for (int turn = 0; turn < 400 && ::SSL_is_init_finished(client.ssl) == 0; turn++) {
      for (const auto& datagram : client.step()) end->socket.send(end->to, datagram);
      port->pump();
      ::poll(nullptr, 0, 2);
      for (const auto& datagram : end->socket.receive())
        if (datagram[0] >= 20) client.take(datagram);
    }
    for (const auto& datagram : client.step()) end->socket.send(end->to, datagram);
    uint8_t key[srtp_key_max_bytes];
    if (!client.sending_key(key)) return false;
    end->cipher = SrtpSession::create(SrtpSuite::aead_aes_128_gcm, key, SrtpSession::Direction::send);
    side.ends.push_back(std::move(end));
  }
  return true;
}

/** Runs so many ticks in real time. Returns the CPU a leg and second in us, below 0 where too few packets came. */
double run(Side& side, int ticks) {
  std::atomic<bool> over{false};
  std::atomic<int64_t> far_us{0};
  std::atomic<size_t> heard{0};
  std::thread far([&] {
    int64_t due = now_of_system().us;
    while (!over) {
      for (const auto& end : side.ends) end->say();
      for (const auto& end : side.ends) heard += end->hear();
      due += Plane::tick_us;
      const int64_t left = due - now_of_system().us;
      if (left > 0) ::poll(nullptr, 0, static_cast<int>(left / 1000));
    }
    far_us = cpu_us(CLOCK_THREAD_CPUTIME_ID);
  });
  for (int done = 0; done < 25;) done += static_cast<int>(side.plane->run().ticks);
  heard = 0;
  const int64_t began = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
  int64_t skipped_us = 0;
  clockid_t far_clock;
  if (::pthread_getcpuclockid(far.native_handle(), &far_clock) == 0) skipped_us = cpu_us(far_clock);
  int done = 0;
  Notice notices[256];
  while (done < ticks) {
    done += static_cast<int>(side.plane->run().ticks);
    while (side.plane->take_notices(notices, 256) == 256) continue;
  }
  const int64_t far_now = cpu_us(far_clock);
  const int64_t spent = cpu_us(CLOCK_PROCESS_CPUTIME_ID) - began - (far_now - skipped_us);
  const double share = static_cast<double>(heard) / (static_cast<double>(side.ends.size()) * done);
  over = true;
  far.join();
  if (share < 0.97) return -1;
  return static_cast<double>(spent) / static_cast<double>(side.ends.size()) / (done * 0.02);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const size_t legs = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 100;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  int error = 0;
  const auto port = WebrtcPort::open(test::own(0), error);
  Side plain, webrtc;
  if (!port || !open_plain(plain, legs) || !open_webrtc(webrtc, port, legs)) {
    std::printf("could not be set up\n");
    return 1;
  }
  plain.seat();
  webrtc.seat();
  std::vector<double> of_plain, of_webrtc;
  for (int round = 0; round < rounds; round++) {
    const double a = run(plain, round_ticks);
    const double b = run(webrtc, round_ticks);
    std::printf("round %d   plain %.0f   WebRTC %.0f us a leg and second\n", round + 1, a, b);
    if (a > 0) of_plain.push_back(a);
    if (b > 0) of_webrtc.push_back(b);
  }
  if (of_plain.empty() || of_webrtc.empty()) return 1;
  std::printf("%zu legs, rooms of %zu: plain %.0f, WebRTC %.0f us a leg and second: %.2f times\n", legs, room_legs,
              median(of_plain), median(of_webrtc), median(of_webrtc) / median(of_plain));
  return 0;
}
