#include "plane/io/port.h"

#include <errno.h>

#include "plane/plane.h"
#include "test/check.h"
#include "test/plane/loopback.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

/** A port pair on the first ports of `host` that are free. */
struct Pair {
  PortPair ports;
  Address here;  // where RTP comes to, on the process's own address

  explicit Pair(const char* host = own_host()) {
    for (uint16_t port = first_port; port < last_port; port = static_cast<uint16_t>(port + 2)) {
      Address rtp, rtcp;
      (void)rtp.parse(host, port);
      (void)rtcp.parse(host, static_cast<uint16_t>(port + 1));
      if (ports.open(rtp, rtcp) != 0) continue;
      here = own(port);
      return;
    }
  }

  /** Sends a byte to the far end, as a leg does. */
  bool send(const Address& to) {
    const uint8_t byte = 1;
    return send_datagram(ports.rtp(), ports.face(to) ? nullptr : &to, &byte, 1);
  }
};

int waiting(int fd) {
  static Batch batch;
  return fd < 0 ? 0 : batch.receive(fd);
}

}  // namespace

TEST("a far end comes to a socket of its own, and anybody else to the other") {
  Pair pair;
  const UdpSocket far, stranger;
  CHECK(pair.send(far.here()));
  CHECK(far.receive().size() == 1u);
  far.send(pair.here, {1});
  stranger.send(pair.here, {2});
  stranger.send(pair.here, {3});
  CHECK(waiting(pair.ports.rtp()) == 1);
  CHECK(waiting(pair.ports.others()) == 2);
}

TEST("a far end that moves is faced at its new address, and its old one is anybody") {
  Pair pair;
  const UdpSocket before, after;
  CHECK(pair.send(before.here()));
  CHECK(pair.send(after.here()));
  CHECK(before.receive().size() == 1u);
  CHECK(after.receive().size() == 1u);
  before.send(pair.here, {1});
  after.send(pair.here, {2});
  CHECK(waiting(pair.ports.rtp()) == 1);
  CHECK(waiting(pair.ports.others()) == 1);
}

TEST("before a far end is faced, and after it was let go of, one socket takes from anybody") {
  Pair pair;
  const UdpSocket far, stranger;
  stranger.send(pair.here, {1});
  CHECK(waiting(pair.ports.rtp()) + waiting(pair.ports.others()) == 1);
  CHECK(pair.send(far.here()));
  pair.ports.let_go();
  CHECK(!pair.ports.face(far.here()));
  stranger.send(pair.here, {1});
  far.send(pair.here, {1});
  CHECK(waiting(pair.ports.rtp()) == 2);
  CHECK(pair.send(far.here()));
  CHECK(far.receive().size() == 2u);
}

TEST("the ports of a pair are nobody else's, whoever is ready to share them") {
  Pair pair;
  PortPair second;
  const Address rtcp = own(static_cast<uint16_t>(pair.here.port() + 1));
  CHECK(second.open(pair.here, rtcp) == EADDRINUSE);
  int fd = -1;
  CHECK(bind_udp(pair.here, fd, true) == EADDRINUSE);
  CHECK(bind_udp(rtcp, fd, true) == EADDRINUSE);
}

TEST("a far end that writes to another address of the machine is heard, and has one socket again") {
  // A socket of all addresses is connected from 127.0.0.1 here, while the far end writes to the process's own.
  Pair pair("0.0.0.0");
  const UdpSocket far;
  CHECK(pair.send(far.here()));
  Batch batch;
  for (uint32_t i = 0; i <= PortPair::strays_max; i++) {
    far.send(pair.here, {1});
    CHECK(waiting(pair.ports.rtp()) == 0);
    CHECK(batch.receive(pair.ports.others()) == 1);
    pair.ports.came_to_others(batch[0].source);
  }
  far.send(pair.here, {1});
  CHECK(waiting(pair.ports.rtp()) == 1);
}

TEST("strangers who come to the other socket move nobody") {
  Pair pair;
  const UdpSocket far, stranger;
  CHECK(pair.send(far.here()));
  for (uint32_t i = 0; i < 4 * PortPair::strays_max; i++) pair.ports.came_to_others(stranger.here());
  CHECK(pair.ports.face(far.here()));
}
