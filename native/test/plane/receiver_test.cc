#include <errno.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "plane/plane.h"
#include "test/check.h"
#include "test/plane/bench.h"
#include "test/plane/loopback.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

/** A plane on loopback, and one far end for all of its legs. */
struct Far {
  std::unique_ptr<Plane> plane;
  UdpSocket socket;
  std::vector<Address> legs{1};  // by number
  Now now{1'000'000'000, 1'700'000'000'000'000};

  explicit Far(bool rings) {
    int error = 0;
    plane = Plane::create(60'000'000, error, rings);
  }

  uint32_t open() {
    const uint32_t id = static_cast<uint32_t>(legs.size());
    for (uint16_t port = first_port; port < last_port; port = static_cast<uint16_t>(port + 2)) {
      if (plane->open(id, own(port), own(static_cast<uint16_t>(port + 1))) != 0) continue;
      legs.push_back(own(port));
      Negotiated agreed;
      agreed.rtp = socket.here();
      agreed.rtcp = nowhere();
      plane->negotiate(id, agreed, now);
      return id;
    }
    return 0;
  }

  void say(uint32_t leg, uint16_t sequence, size_t count = 160) const {
    std::vector<uint8_t> bytes(rtp_header_bytes + count, 0x55);
    rtp_write_header(bytes.data(), false, 0, sequence, sequence * 160u, 77);
    (void)send_datagram(socket.fd(), &legs[leg], bytes.data(), bytes.size());
  }

  void tick() {
    plane->tick(now);
    now.us += Plane::tick_us;
    now.wall_us += Plane::tick_us;
  }

  uint32_t heard(uint32_t leg) const {
    Counters counters;
    (void)plane->counters(leg, counters);
    return counters.received;
  }
};

/** Makes every ring of this process say that work waits. That stays so until the system has done some: as it happens
 * where the work was taken between its two steps, to add work and to say so. Returns how many rings there are. */
int say_that_work_waits() {
  io_uring_params params = {};
  const int fd = static_cast<int>(::syscall(__NR_io_uring_setup, 1, &params));
  if (fd < 0) return 0;
  ::close(fd);
  int rings = 0;
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return 0;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    uintptr_t start = 0;
    unsigned long long offset = 1;
    if (std::strstr(line, "[io_uring]") == nullptr) continue;
    if (std::sscanf(line, "%" SCNxPTR "-%*x %*s %llx", &start, &offset) != 2 || offset != IORING_OFF_SQ_RING) continue;
    auto* flags = reinterpret_cast<uint32_t*>(start + params.sq_off.flags);
    (void)__atomic_fetch_or(flags, IORING_SQ_TASKRUN, __ATOMIC_RELAXED);
    rings++;
  }
  (void)std::fclose(maps);
  return rings;
}

/** Has the system refuse the calling thread, for its life, each io_uring_enter(2) that submits exactly one request.
 * Returns whether it could be done. */
bool refuse_single_requests() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_enter, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof steps / sizeof steps[0], steps};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST("a leg whose request the system refused for want of memory is heard as soon as it takes requests again") {
  std::thread([] {
    if (!refuse_single_requests()) return;
    Far far(true);
    const uint32_t refused = far.open();
    far.say(refused, 1);
    far.tick();
    const uint32_t other = far.open();
    far.say(other, 1);
    far.tick();
    CHECK(far.heard(refused) == 1);
    CHECK(far.heard(other) == 1);
  }).join();
}

TEST("a leg that is closed before the system took its request leaves its socket's number to the next one") {
  std::thread([] {
    if (!refuse_single_requests()) return;
    Far far(true);
    const uint32_t refused = far.open();
    far.tick();
    Counters counters;
    CHECK(far.plane->close(refused, counters, far.now));
    const uint32_t next = far.open();
    const uint32_t other = far.open();
    far.tick();
    for (uint16_t sequence = 1; sequence <= 5; sequence++) {
      far.say(next, sequence);
      far.say(other, sequence);
      far.tick();
    }
    CHECK(far.heard(next) == 5);
    CHECK(far.heard(other) == 5);
  }).join();
}

TEST("a system that says without end that packets wait does not hold a tick up, and what comes then is heard") {
  Far far(true);
  const uint32_t leg = far.open();
  far.say(leg, 1);
  far.tick();
  CHECK(far.heard(leg) == 1);
  const unsigned before = ::alarm(20);  // ends this program instead of hanging it
  (void)say_that_work_waits();
  for (int i = 0; i < 5; i++) far.tick();
  far.say(leg, 2);
  far.tick();
  CHECK(far.heard(leg) == 2);
  (void)::alarm(before);
}

TEST("whatever has come is there with the next tick, on many legs at once, more than there are buffers") {
  for (const bool rings : {true, false}) {
    Far far(rings);
    for (int i = 0; i < 60; i++) CHECK(far.open() != 0);
    far.tick();
    for (uint16_t sequence = 1; sequence <= 30; sequence++) {
      for (uint32_t leg = 1; leg <= 60; leg++) far.say(leg, sequence);
    }
    far.tick();
    for (uint32_t leg = 1; leg <= 60; leg++) CHECK(far.heard(leg) == 30);
  }
}

TEST("a flooded leg takes its bound a tick, the others theirs at once, and nothing that its socket held is lost") {
  for (const bool rings : {true, false}) {
    Far far(rings);
    const uint32_t flooded = far.open();
    const uint32_t other = far.open();
    far.tick();
    constexpr uint16_t count = 200;
    for (uint16_t sequence = 1; sequence <= count; sequence++) far.say(flooded, sequence);
    far.say(other, 1);
    far.tick();
    CHECK(far.heard(other) == 1);
    CHECK(far.heard(flooded) >= Receiver::most);
    CHECK(far.heard(flooded) < count);
    far.tick();
    CHECK(far.heard(flooded) == count);
    far.say(flooded, count + 1);
    far.tick();
    CHECK(far.heard(flooded) == count + 1);
  }
}

TEST("what lies behind a refusal of our own packet is heard in the same tick, and at the close of a leg") {
  for (const bool rings : {true, false}) {
    Bench bench(rings);
    auto gone = std::make_unique<UdpSocket>();
    const FarEnd* const far = bench.open();
    CHECK(far != nullptr);
    Negotiated agreed;
    agreed.rtp = gone->here();
    agreed.rtcp = nowhere();
    bench.plane->negotiate(1, agreed, bench.now);
    const auto again = [&](uint16_t sequence) {
      std::vector<uint8_t> bytes(rtp_header_bytes + frame_units, 0x55);
      rtp_write_header(bytes.data(), false, 0, sequence, sequence * 160u, 77);
      int fd = -1;
      gone.reset();
      bench.tick();  // whose packet nobody takes
      const bool bound = bind_udp(agreed.rtp, fd) == 0 && send_datagram(fd, &far->leg, bytes.data(), bytes.size());
      ::close(fd);
      return bound;
    };
    Counters counters;
    CHECK(again(1));
    bench.tick();
    CHECK(bench.plane->counters(1, counters) && counters.received == 1);
    CHECK(again(2));
    CHECK(bench.plane->close(1, counters, bench.now) && counters.received == 2);
  }
}

TEST("datagrams that are too large, empty or of no sense are passed over, and the leg hears on") {
  for (const bool rings : {true, false}) {
    Far far(rings);
    const uint32_t leg = far.open();
    far.say(leg, 1);
    for (size_t more = 1; more < 40; more++) far.say(leg, 2, Datagram::bytes_max - rtp_header_bytes + more);
    (void)send_datagram(far.socket.fd(), &far.legs[leg], nullptr, 0);
    const uint8_t odd[3] = {0x80, 0, 1};
    (void)send_datagram(far.socket.fd(), &far.legs[leg], odd, sizeof odd);
    far.say(leg, 2);
    far.say(leg, 3, Datagram::bytes_max - rtp_header_bytes);
    far.tick();
    CHECK(far.heard(leg) == 3);
  }
}

TEST("the ports of a closed leg, and of a plane that is gone, are free at once, whatever is on its way to them") {
  for (const bool rings : {true, false}) {
    Address last;
    {
      Far far(rings);
      for (int round = 0; round < 50; round++) {
        const uint32_t leg = far.open();
        CHECK(leg != 0);
        CHECK(round == 0 || far.legs[leg].port() == last.port());
        last = far.legs[leg];
        far.say(leg, 1);
        if (round % 2 == 0) far.tick();
        far.say(leg, 2);
        Counters counters;
        CHECK(far.plane->close(leg, counters, far.now));
      }
      CHECK(far.open() != 0);
      far.tick();
    }
    Far far(rings);
    CHECK(far.open() == 1);
    CHECK(far.legs[1].port() == last.port());
  }
}

TEST("a leg that moves to another plane takes along what has come for it") {
  for (const bool rings : {true, false}) {
    Far from(rings);
    Far to(rings);
    const uint32_t leg = from.open();
    from.tick();
    for (int round = 0; round < 20; round++) {
      Far& here = round % 2 == 0 ? from : to;
      Far& there = round % 2 == 0 ? to : from;
      from.say(leg, static_cast<uint16_t>(3 * round + 1));
      here.tick();
      from.say(leg, static_cast<uint16_t>(3 * round + 2));
      CHECK(here.plane->move(leg, there.plane->number(), here.now));
      from.say(leg, static_cast<uint16_t>(3 * round + 3));
      there.tick();
      CHECK(there.heard(leg) == static_cast<uint32_t>(3 * round + 3));
    }
  }
}

TEST("legs that come and go among others leave those to hear everything") {
  for (const bool rings : {true, false}) {
    Far far(rings);
    const uint32_t stays = far.open();
    for (uint16_t round = 1; round <= 100; round++) {
      const uint32_t guest = far.open();
      CHECK(guest != 0);
      far.say(guest, 1);
      far.say(stays, round);
      if (round % 3 == 0) far.tick();
      Counters counters;
      CHECK(far.plane->close(guest, counters, far.now));
    }
    far.tick();
    CHECK(far.heard(stays) == 100);
  }
}

TEST("a leg that is closed has counted all that came before, also what no tick has fetched yet") {
  for (const bool rings : {true, false}) {
    test::Bench bench(rings);
    test::FarEnd* far = bench.open();
    CHECK(far != nullptr);
    far->say(std::vector<uint8_t>(frame_units, 0x55));
    bench.tick();
    for (int i = 0; i < 3; i++) far->say(std::vector<uint8_t>(frame_units, 0x55));
    Counters counters;
    CHECK(bench.plane->close(1, counters, bench.now));
    CHECK(counters.received == 4);
  }
}

TEST("of a flood of keys 256 are told at once and 25 a second, and of keys as fast as they may be pressed each") {
  Bench bench;
  FarEnd* flood = bench.open(Codec::pcmu, true);
  FarEnd* fast = bench.open(Codec::pcmu, true);
  CHECK(flood != nullptr && fast != nullptr);
  flood->payload_type = fast->payload_type = 101;
  size_t told[2] = {0, 0};
  size_t pressed = 0;
  for (int tick = 0; tick < 500; tick++) {
    for (int key = 0; key < 50; key++) flood->say({5, 0x8a, 0x01, 0x40});
    if (tick % 3 == 0) {
      fast->say({6, 0x8a, 0x01, 0x40});
      fast->timestamp += 2 * frame_units;
      pressed++;
    }
    bench.tick();
    for (const Notice& notice : bench.notices()) {
      if (notice.kind == NoticeKind::digit) told[notice.leg - 1]++;
    }
  }
  CHECK(told[0] >= 256 + 249 && told[0] <= 256 + 250);
  CHECK(told[1] == pressed);
}
