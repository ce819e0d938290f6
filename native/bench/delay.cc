// From packet in to mix out: delay LEGS ROOM FIRST_PORT PEER_PORT SECONDS ENGINE_CORE ENGINE_PID STALLS
//
// The far ends of LEGS legs in rooms of ROOM (leg i in room i / ROOM), spread over the 20 ms. All say a buzz of their
// own pitch all the time, without a pause. Four of each room (all, where there are fewer) now and then say one packet
// that is loud, each at a level of its own, so that whoever hears it knows whose it is. The delay is from that packet's
// sending to the place in the mix, at each other member, where it begins: the kernel's stamp of the frame's departure,
// and how far into the frame it is. Then the engine is stopped for 250 ms (SIGSTOP), STALLS times, ten seconds apart.
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/control_timer.h"
#include "bench/stamped_socket.h"
#include "kernel/codec/g711.h"

using namespace sidetone::bench;

namespace {

constexpr int slices = 20;
constexpr int64_t second_ns = 1'000'000'000;
constexpr double unit_ms = 0.125;
constexpr int learning_ticks = 750;  // legs join, and jitter buffers settle
constexpr int codes = 4;
constexpr int mark_ticks = 24;  // of one talker; more than anything is late here
constexpr int between_ticks = mark_ticks / codes;
constexpr int stall_ticks = 500;
constexpr int64_t stall_ns = 250'000'000;
constexpr int settled_units = 48;  // into a mark, what it is can be told whatever led into it
constexpr int loud = 8'000;
constexpr int louder = 21'000;
constexpr size_t heard_max = 20'000'000;

constexpr int16_t levels[codes] = {14'000, -14'000, 28'000, -28'000};

struct Heard {
  uint32_t talker;
  int64_t sent_ns;
  float frame_ms;  // until the frame left in which the mark begins
  float ms;        // and until the mark in it
};

struct Listener {
  int64_t onset_ns = 0;  // departure of the frame that a mark began in; 0: none
  int onset = 0;         // where in it
  int passed = 0;        // units since
};

struct Stall {
  int64_t from_ns;
  int64_t to_ns;
};

struct Run {
  int legs = 0;
  int room = 0;
  int first_port = 0;
  std::vector<std::vector<uint8_t>> buzz;  // of each leg: some periods
  std::vector<Listener> listeners;
  std::vector<int64_t> marked_ns;  // when each leg's last marked packet was sent
  std::vector<Heard> heard;
  int16_t decoded[256];

  /** The code of leg `i`, or -1. */
  int code(int i) const {
    const int place = i % room;
    for (int c = 0; c < talkers(); c++) {
      if (place == c * room / talkers()) return c;
    }
    return -1;
  }
  int talkers() const { return room < codes ? room : codes; }
  int talker(int listener, int c) const { return listener / room * room + c * room / talkers(); }

  void take(const uint8_t* bytes, size_t length, int leg, int64_t at_ns) {
    if (length != packet_bytes || leg < 0 || leg >= legs || (bytes[1] & 0x7f) != 0) return;
    Listener& ear = listeners[static_cast<size_t>(leg)];
    for (int i = 0; i < payload_bytes; i++) {
      const int16_t sample = decoded[bytes[header_bytes + i]];
      if (ear.onset_ns == 0) {
        if (sample < loud && sample > -loud) continue;
        ear = {at_ns, i, 0};
      } else if (++ear.passed == settled_units) {
        tell(leg, ear, sample);
      } else if (ear.passed > settled_units && sample < loud && sample > -loud) {
        ear.onset_ns = 0;
      }
    }
  }

  void tell(int leg, const Listener& ear, int16_t sample) {
    if ((sample < loud && sample > -loud) || heard.size() >= heard_max) return;
    const int c = (sample > louder || sample < -louder ? 2 : 0) + (sample < 0 ? 1 : 0);
    const int who = talker(leg, c);
    const int64_t sent_ns = marked_ns[static_cast<size_t>(who)];
    if (sent_ns == 0 || who == leg) return;
    const double frame_ms = static_cast<double>(ear.onset_ns - sent_ns) / 1e6;
    heard.push_back({static_cast<uint32_t>(who), sent_ns, static_cast<float>(frame_ms),
                     static_cast<float>(frame_ms + ear.onset * unit_ms)});
  }
};

struct Spread {
  double median;
  double p99;
  double most;
};

Spread spread(std::vector<float>& values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&values](double part) {
    return static_cast<double>(values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))]);
  };
  return {at(0.5), at(0.99), at(1)};
}

/** Whose marks of `from` to `to` were heard how late, the median of each talker; below zero: not at all. */
std::vector<float> of_each(const Run& run, int64_t from, int64_t to) {
  std::vector<std::vector<float>> each(static_cast<size_t>(run.legs));
  for (const Heard& one : run.heard) {
    if (one.sent_ns >= from && one.sent_ns < to) each[one.talker].push_back(one.ms);
  }
  std::vector<float> medians;
  for (std::vector<float>& values : each)
    medians.push_back(values.empty() ? -1.0f : static_cast<float>(spread(values).median));
  return medians;
}

void report(const Run& run, int64_t from_ns, const std::vector<Stall>& stalls, int64_t until_ns, uint64_t due) {
  const int64_t steady_ns = stalls.empty() ? until_ns : stalls[0].from_ns - second_ns;
  std::vector<float> frames;
  std::vector<float> sounds;
  for (const Heard& one : run.heard) {
    if (one.sent_ns < from_ns || one.sent_ns >= steady_ns) continue;
    frames.push_back(one.frame_ms);
    sounds.push_back(one.ms);
  }
  std::vector<float> legs = of_each(run, from_ns, steady_ns);
  legs.erase(std::remove_if(legs.begin(), legs.end(), [](float ms) { return ms < 0; }), legs.end());
  const size_t measured = legs.size();
  const Spread sound = spread(sounds);
  const Spread frame = spread(frames);
  const Spread leg = spread(legs);
  std::printf("marks heard %zu, of all that were sent %.2f %%\n", sounds.size(),
              100.0 * static_cast<double>(run.heard.size()) / static_cast<double>(std::max<uint64_t>(due, 1)));
  std::printf("packet in to its sound out   median %7.2f  p99 %7.2f  most %7.2f ms\n", sound.median, sound.p99,
              sound.most);
  std::printf("packet in to its frame out   median %7.2f  p99 %7.2f  most %7.2f ms\n", frame.median, frame.p99,
              frame.most);
  std::printf("median of each of %4zu legs   median %7.2f  p99 %7.2f  most %7.2f ms; least %.2f\n", measured,
              leg.median, leg.p99, leg.most, legs.empty() ? 0 : static_cast<double>(legs[0]));
  for (const Stall& stall : stalls) {
    const std::vector<float> before = of_each(run, stall.from_ns - 5 * second_ns, stall.from_ns - second_ns / 2);
    std::printf("stopped for %.0f ms; delay beyond that of before, over legs:\n",
                static_cast<double>(stall.to_ns - stall.from_ns) / 1e6);
    for (int second = -1; second < 5; second++) {
      const int64_t from = second < 0 ? stall.from_ns : stall.to_ns + second * second_ns;
      const std::vector<float> after = of_each(run, from, second < 0 ? stall.to_ns : from + second_ns);
      std::vector<float> more;
      size_t back = 0;
      for (size_t i = 0; i < after.size(); i++) {
        if (after[i] < 0 || before[i] < 0) continue;
        more.push_back(after[i] - before[i]);
        if (more.back() <= 5) back++;
      }
      const size_t count = more.size();
      const Spread by = spread(more);
      const char* const when[] = {
          "sent while it was stopped", "in the first second after", "second", "third", "fourth", "fifth"};
      std::printf("  %-26s median %7.2f  p99 %7.2f  most %7.2f ms; within 5 ms %zu of %zu\n", when[second + 1],
                  by.median, by.p99, by.most, back, count);
    }
  }
}

/** What the far ends send: each a buzz of its own, and now and then a packet that is a mark. */
class Voices {
 public:
  explicit Voices(Run& run) : run_(run), packets_(static_cast<size_t>(run.legs) * packet_bytes), sent_in_(slices) {
    const size_t legs = static_cast<size_t>(run.legs);
    run.listeners.resize(legs);
    run.marked_ns.resize(legs);
    uint8_t all[256];
    for (int i = 0; i < 256; i++) all[i] = static_cast<uint8_t>(i);
    sidetone::mulaw_decode(all, run.decoded, 256);
    sidetone::mulaw_encode(levels, marks_, codes);
    for (size_t i = 0; i < legs; i++) {
      // A pulse with a slope, 100 to 250 Hz: never quiet, and no two of a room alike.
      const size_t period = 32 + i * 7 % 49;
      std::vector<int16_t> pcm(period + payload_bytes);
      for (size_t k = 0; k < pcm.size(); k++)
        pcm[k] = static_cast<int16_t>(600 - 1200 * static_cast<int>(k % period) / static_cast<int>(period));
      run.buzz.emplace_back(pcm.size());
      sidetone::mulaw_encode(pcm.data(), run.buzz.back().data(), pcm.size());
      peers_.push_back(loopback(run.first_port + 2 * static_cast<int>(i)));
      uint8_t* packet = &packets_[i * packet_bytes];
      const uint32_t ssrc = htonl(static_cast<uint32_t>(i) + 1);
      packet[0] = 0x80;
      std::memcpy(packet + 8, &ssrc, 4);
    }
    // Spread over the tick in each room, and so are the marked ones of all rooms.
    for (int i = 0; i < run.legs; i++)
      sent_in_[static_cast<size_t>((i % run.room * 7 + i / run.room) % slices)].push_back(i);
  }

  /** Sends the packets of one slice of a tick, with marks where it is their turn; returns how many marks are due. */
  uint64_t send(int fd, int64_t tick, int slice, bool marking) {
    uint64_t due = 0;
    for (const int i : sent_in_[static_cast<size_t>(slice)]) {
      uint8_t* packet = &packets_[static_cast<size_t>(i) * packet_bytes];
      const std::vector<uint8_t>& buzz = run_.buzz[static_cast<size_t>(i)];
      const uint32_t units = static_cast<uint32_t>(tick * payload_bytes);
      const uint32_t timestamp = htonl(units);
      packet[2] = static_cast<uint8_t>(tick >> 8);
      packet[3] = static_cast<uint8_t>(tick);
      std::memcpy(packet + 4, &timestamp, 4);
      const int c = run_.code(i);
      const bool mark = marking && c >= 0 && (tick + i / run_.room) % mark_ticks == c * between_ticks;
      if (mark) std::memset(packet + header_bytes, marks_[c], payload_bytes);
      else std::memcpy(packet + header_bytes, &buzz[units % (buzz.size() - payload_bytes)], payload_bytes);
      const int64_t sent_ns = clock_ns(CLOCK_MONOTONIC);
      if (sendto(fd, packet, packet_bytes, 0, reinterpret_cast<const sockaddr*>(&peers_[static_cast<size_t>(i)]),
                 sizeof peers_[0]) < 0)
        continue;
      if (!mark) continue;
      run_.marked_ns[static_cast<size_t>(i)] = sent_ns;
      due += static_cast<uint64_t>(run_.room) - 1;
    }
    return due;
  }

 private:
  Run& run_;
  uint8_t marks_[codes];
  std::vector<sockaddr_in> peers_;
  std::vector<uint8_t> packets_;
  std::vector<std::vector<int>> sent_in_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) {
    std::fprintf(stderr, "delay LEGS ROOM FIRST_PORT PEER_PORT SECONDS ENGINE_CORE ENGINE_PID STALLS\n");
    return 2;
  }
  Run run;
  run.legs = std::atoi(argv[1]);
  run.room = std::atoi(argv[2]);
  run.first_port = std::atoi(argv[3]);
  const int64_t steady_ticks = learning_ticks + std::atoll(argv[5]) * 50;
  const pid_t engine = std::atoi(argv[7]);
  const int stalls_wanted = std::atoi(argv[8]);
  const int64_t ticks = steady_ticks + static_cast<int64_t>(stalls_wanted) * stall_ticks + 25;
  StampedSocket socket;
  if (run.room < 2 || run.legs < run.room || !socket.open(std::atoi(argv[4]))) return 1;

  Voices voices(run);
  ControlTimers timers(std::atoi(argv[6]), sched_getcpu());

  const auto take = [&run](const uint8_t* bytes, size_t length, int port, int64_t at_ns) {
    run.take(bytes, length, (port - run.first_port) / 2, at_ns);
  };
  uint64_t due = 0;
  Lateness sending;
  std::vector<Stall> stalls;
  int64_t counted_ns = 0;
  const int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
  for (int64_t tick = 0; tick < ticks; tick++) {
    const bool marking = tick >= learning_ticks && tick < ticks - 25;
    if (tick == learning_ticks) {
      timers.counting = true;
      counted_ns = clock_ns(CLOCK_MONOTONIC);
    }
    const bool stopping = tick >= steady_ticks && static_cast<int>(stalls.size()) < stalls_wanted &&
                          (tick - steady_ticks) % stall_ticks == 0;
    if (stopping) timers.counting = false;
    for (int slice = 0; slice < slices; slice++) {
      const int64_t at_ns = start_ns + tick * tick_ns + slice * (tick_ns / slices);
      sleep_until(at_ns);
      const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
      if (timers.counting) sending.add(now_ns - at_ns);
      if (stopping && slice == 0 && kill(engine, SIGSTOP) == 0) stalls.push_back({now_ns, 0});
      if (!stalls.empty() && stalls.back().to_ns == 0 && now_ns - stalls.back().from_ns >= stall_ns) {
        (void)kill(engine, SIGCONT);
        stalls.back().to_ns = now_ns;
      }
      due += voices.send(socket.fd(), tick, slice, marking);
      socket.drain(take);
    }
  }
  timers.stop();
  std::printf("far ends %s\n", timers.permitted() ? "real-time" : "ordinary");
  report(run, counted_ns, stalls, start_ns + (ticks - 25) * tick_ns, due);
  timers[0].lateness.print("timer on the engine's core");
  timers[1].lateness.print("timer on the other core");
  sending.print("packets to the engine");
  return 0;
}
