// The far ends of many legs in one process, and what they notice: crowd LEGS FIRST_PORT PEER_PORT SECONDS ENGINE_CORE
//
// Each leg is sent a packet every 20 ms, the legs spread over the 20 ms as real ones are. Everyone says one constant
// sample, so everyone hears a constant: a frame that is otherwise holds a voice that came too late, or was invented.
// The kernel stamps what comes back, so the delay of this process does not count. A timer on each core, which does
// nothing else, tells how late the machine itself was. Where it is permitted, all of this stands above every other
// thread, the engine's too: what the timers say is then the machine's doing alone, and the far ends speak on time. A
// late frame counts as the machine's where it would have been in time without the stalls that the timer on the engine's
// core saw meanwhile.
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/control_timer.h"
#include "bench/stamped_socket.h"

using namespace sidetone::bench;

namespace {

constexpr int slices = 10;
constexpr size_t late_max = 20'000'000;
/** Legs join, jitter buffers settle, and each leg's schedule is learned. */
constexpr int learning_ticks = 500;

struct Far {
  bool begun = false;
  uint32_t first_timestamp = 0;
  int64_t base_ns = INT64_MAX;  // when its frame 0 would leave, at best
  int64_t offset_ticks = 0;     // of its frame 0 in the common count
  int64_t first_frame = -1;     // once learned
  int64_t last_frame = -1;
  uint64_t frames = 0;
  uint64_t bent = 0;
  uint64_t late = 0;
  uint8_t steady = 0;
};

struct Crowd {
  StampedSocket socket;
  int first_port = 0;
  bool learned = false;
  int64_t base_ns = 0;
  std::vector<Far> legs;
  std::vector<int64_t> tick_first_ns;  // lateness of a tick's first packet
  std::vector<Span> late;              // of frames that left a frame or more late: when they were due, when they left
  Lateness packets;

  void take(const uint8_t* bytes, size_t length, size_t leg, int64_t at_ns) {
    if (length != packet_bytes || leg >= legs.size() || (bytes[1] & 0x7f) != 0) return;
    Far& far = legs[leg];
    uint32_t timestamp;
    std::memcpy(&timestamp, bytes + 4, 4);
    timestamp = ntohl(timestamp);
    if (!far.begun) {
      far.begun = true;
      far.first_timestamp = timestamp;
    }
    const int64_t frame = static_cast<int32_t>(timestamp - far.first_timestamp) / 160;
    if (!learned) {
      far.base_ns = std::min(far.base_ns, at_ns - frame * tick_ns);
      far.steady = bytes[header_bytes + 80];
      return;
    }
    if (far.first_frame < 0) far.first_frame = frame;
    far.last_frame = std::max(far.last_frame, frame);
    far.frames++;
    for (int i = header_bytes; i < packet_bytes; i++) {
      if (bytes[i] == far.steady) continue;
      far.bent++;
      break;
    }
    const int64_t tick = frame + far.offset_ticks;
    const int64_t late_ns = at_ns - base_ns - tick * tick_ns;
    packets.add(late_ns);
    if (late_ns > tick_ns) far.late++;
    if (late_ns > tick_ns && late.size() < late_max) late.push_back({at_ns - late_ns, at_ns});
    if (tick >= 0 && tick < static_cast<int64_t>(tick_first_ns.size())) {
      int64_t& first = tick_first_ns[static_cast<size_t>(tick)];
      first = std::min(first, late_ns);
    }
  }

  void learn() {
    int64_t earliest = INT64_MAX;
    for (const Far& far : legs) earliest = std::min(earliest, far.base_ns);
    base_ns = INT64_MAX;
    for (Far& far : legs) {
      if (!far.begun) continue;
      far.offset_ticks = (far.base_ns - earliest + tick_ns / 2) / tick_ns;
      base_ns = std::min(base_ns, far.base_ns - far.offset_ticks * tick_ns);
    }
    learned = true;
  }
};

/** One packet for each leg, sent again and again under new numbers. */
class Voices {
 public:
  Voices(size_t legs, int first_port) : packets_(legs * packet_bytes), vectors_(legs), messages_(legs) {
    for (size_t i = 0; i < legs; i++) peers_.push_back(loopback(first_port + 2 * static_cast<int>(i)));
    for (size_t i = 0; i < legs; i++) {
      uint8_t* packet = &packets_[i * packet_bytes];
      // Half of a room above zero and half below: what is left of nine is small, and a voice less is heard in it.
      std::memset(packet, static_cast<int>((i % 2 == 0 ? 0xc0 : 0x40) | (i / 2 % 8)), packet_bytes);
      const uint32_t ssrc = htonl(static_cast<uint32_t>(i) + 1);
      packet[0] = 0x80;
      packet[1] = 0;
      std::memcpy(packet + 8, &ssrc, 4);
      vectors_[i] = {packet, packet_bytes};
      messages_[i].msg_hdr.msg_name = &peers_[i];
      messages_[i].msg_hdr.msg_namelen = sizeof peers_[i];
      messages_[i].msg_hdr.msg_iov = &vectors_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }

  /** Sends the packets of these legs for a tick; returns how many the system took. */
  uint64_t send(int fd, int64_t tick, int from, int to) {
    const uint32_t timestamp = htonl(static_cast<uint32_t>(tick * 160));
    for (int i = from; i < to; i++) {
      uint8_t* packet = &packets_[static_cast<size_t>(i) * packet_bytes];
      packet[2] = static_cast<uint8_t>(tick >> 8);
      packet[3] = static_cast<uint8_t>(tick);
      std::memcpy(packet + 4, &timestamp, 4);
    }
    int at = from;
    while (at < to) {
      const int count = sendmmsg(fd, &messages_[static_cast<size_t>(at)], static_cast<unsigned>(to - at), 0);
      if (count <= 0) break;
      at += count;
    }
    return static_cast<uint64_t>(at - from);
  }

 private:
  std::vector<sockaddr_in> peers_;
  std::vector<uint8_t> packets_;
  std::vector<iovec> vectors_;
  std::vector<mmsghdr> messages_;
};

/** Prints what the far ends heard; `engine` was measured beside the engine. */
void report(const Crowd& crowd, const Control& engine) {
  uint64_t expected = 0;
  uint64_t frames = 0;
  uint64_t late = 0;
  uint64_t bent = 0;
  int silent = 0;
  for (const Far& far : crowd.legs) {
    if (far.first_frame < 0) silent++;
    else expected += static_cast<uint64_t>(far.last_frame - far.first_frame + 1);
    frames += far.frames;
    late += far.late;
    bent += far.bent;
  }
  uint64_t excused = 0;
  for (const Span& each : crowd.late) excused += each.to_ns - each.from_ns - engine.stalled_ns(each) <= tick_ns ? 1 : 0;
  const double all = static_cast<double>(std::max<uint64_t>(expected, 1)) / 100;
  std::printf("legs never heard %d\n", silent);
  std::printf(
      "frames due %llu; missing %llu (%.4f %%); a frame or more late %llu (%.4f %%); with a voice of nine missing or "
      "invented %llu (%.4f %%)\n",
      static_cast<unsigned long long>(expected), static_cast<unsigned long long>(expected - frames),
      static_cast<double>(expected - frames) / all, static_cast<unsigned long long>(late),
      static_cast<double>(late) / all, static_cast<unsigned long long>(bent), static_cast<double>(bent) / all);
  std::printf("late by the machine's stalls %llu, otherwise %llu (%.4f %%)\n", static_cast<unsigned long long>(excused),
              static_cast<unsigned long long>(late - excused), static_cast<double>(late - excused) / all);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "crowd LEGS FIRST_PORT PEER_PORT SECONDS ENGINE_CORE\n");
    return 2;
  }
  const int legs = std::atoi(argv[1]);
  const int64_t ticks = std::atoll(argv[4]) * 50 + learning_ticks;
  const int engine_core = std::atoi(argv[5]);
  Crowd crowd;
  crowd.first_port = std::atoi(argv[2]);
  crowd.legs.resize(static_cast<size_t>(legs));
  crowd.tick_first_ns.assign(static_cast<size_t>(ticks) + 3000, INT64_MAX);
  if (!crowd.socket.open(std::atoi(argv[3]))) return 1;

  Voices voices(static_cast<size_t>(legs), crowd.first_port);
  ControlTimers timers(engine_core, sched_getcpu());

  uint64_t sent = 0;
  Lateness sending;
  const int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
  for (int64_t tick = 0; tick < ticks; tick++) {
    if (tick == learning_ticks) {
      crowd.learn();
      timers.counting = true;
    }
    for (int slice = 0; slice < slices; slice++) {
      const int64_t at_ns = start_ns + tick * tick_ns + slice * (tick_ns / slices);
      sleep_until(at_ns);
      if (timers.counting) sending.add(clock_ns(CLOCK_MONOTONIC) - at_ns);
      sent += voices.send(crowd.socket.fd(), tick, legs * slice / slices, legs * (slice + 1) / slices);
      crowd.socket.drain([&crowd](const uint8_t* bytes, size_t length, int port, int64_t at_ns) {
        crowd.take(bytes, length, static_cast<size_t>((port - crowd.first_port) / 2), at_ns);
      });
    }
  }
  timers.stop();

  Lateness firsts;
  for (const int64_t first : crowd.tick_first_ns) {
    if (first != INT64_MAX) firsts.add(first);
  }
  std::printf("far ends %s; sent %llu of %llu packets; ", timers.permitted() ? "real-time" : "ordinary",
              static_cast<unsigned long long>(sent),
              static_cast<unsigned long long>(ticks) * static_cast<unsigned long long>(legs));
  report(crowd, timers[0]);
  firsts.print("first packet of a tick");
  crowd.packets.print("all packets");
  timers[0].lateness.print("timer on the engine's core");
  timers[1].lateness.print("timer on the other core");
  sending.print("packets to the engine");
  return 0;
}
