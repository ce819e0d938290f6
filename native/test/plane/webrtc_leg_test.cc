// WebRTC legs in a plane, from the browser's socket and back: its checks, its handshake, its audio and its reports.
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "plane/plane.h"
#include "test/check.h"
#include "test/plane/loopback.h"
#include "test/plane/srtp_packets.h"
#include "test/plane/webrtc_client.h"

#ifdef SIDETONE_WEBRTC

using namespace sidetone;
using namespace sidetone::test;
using namespace sidetone::test::srtp;

namespace {

constexpr char password[] = "a password of the leg";
constexpr SrtpSuite suite = SrtpSuite::aead_aes_128_gcm;

bool is_media(const Bytes& datagram) { return !datagram.empty() && datagram[0] >= 128 && datagram[0] <= 191; }

uint16_t sequence_of(const Bytes& packet) { return static_cast<uint16_t>(packet[2] << 8 | packet[3]); }

/** A browser: it says under its own key, and opens what comes under the key of the server. */
struct Browser {
  std::string name;
  Address port;
  DtlsClient client;
  std::unique_ptr<UdpSocket> socket = std::make_unique<UdpSocket>();
  std::unique_ptr<SrtpSession> out;
  std::unique_ptr<SrtpSession> in;
  uint16_t sequence = 100;
  size_t unopened = 0;  // packets that are not under the key

  void check(bool nominates = true) const { socket->send(port, test::check(name, password, nominates)); }
  /** Goes on with the handshake. */
  void shake() {
    for (const Bytes& datagram : socket->receive()) {
      if (datagram[0] >= 20 && datagram[0] <= 63) client.take(datagram);
    }
    for (const Bytes& datagram : client.step()) socket->send(port, datagram);
    uint8_t key[srtp_key_max_bytes];
    if (out || !client.sending_key(key)) return;
    out = SrtpSession::create(suite, key, SrtpSession::Direction::send);
    (void)client.receiving_key(key);
    in = SrtpSession::create(suite, key, SrtpSession::Direction::receive);
  }
  /** Says one frame of 20 ms; returns the datagram. */
  Bytes say(uint8_t fill) {
    Packet packet(sequence++, fill);
    (void)out->protect(packet.bytes, packet.count);
    const Bytes datagram(packet.bytes, packet.bytes + packet.count);
    socket->send(port, datagram);
    return datagram;
  }
  /** The packets that came since the last call, opened: those of audio, or the reports. */
  std::vector<Bytes> hear(bool reports = false) {
    std::vector<Bytes> all;
    for (Bytes& datagram : socket->receive()) {
      size_t count = datagram.size();
      if (!is_media(datagram) || rtp_is_rtcp(datagram.data(), count) != reports) continue;
      const auto verdict = reports ? in->unprotect_rtcp(datagram.data(), count) : in->unprotect(datagram.data(), count);
      datagram.resize(count);
      if (verdict == SrtpSession::Verdict::ok) all.push_back(std::move(datagram));
      else unopened++;
    }
    return all;
  }
};

/** A port, and a plane whose legs are browsers. */
struct Stage {
  int error = 0;
  std::shared_ptr<WebrtcPort> port;
  std::unique_ptr<Plane> plane = Plane::create(60'000'000, error);
  std::vector<std::unique_ptr<Browser>> browsers;
  std::vector<Notice> told;
  Now now{1'000'000'000, 1'700'000'000'000'000};

  explicit Stage(int64_t consent_us = WebrtcLink::consent_us) : port(WebrtcPort::open(own(0), error, consent_us)) {}
  ~Stage() {
    if (port) port->retire();
  }

  static Negotiated terms() {
    Negotiated agreed;
    agreed.rtp = agreed.rtcp = nowhere();  // as the SDP of a browser has it: only ICE tells where it is
    agreed.event_payload_type = -1;
    return agreed;
  }

  Browser* browser() {
    browsers.push_back(std::make_unique<Browser>());
    browsers.back()->name = "browser" + std::to_string(browsers.size());
    browsers.back()->port = own(port->bound_port());
    return browsers.back().get();
  }

  /** A negotiated leg whose number and SSRC are its place from 1 on, before the first check. */
  Browser* open() {
    if (!port) return nullptr;
    Browser* const far = browser();
    const uint32_t id = static_cast<uint32_t>(browsers.size());
    if (plane->open_webrtc(id, id, port, {far->name, password}, far->client.fingerprint) != 0) return nullptr;
    return plane->negotiate(id, terms(), now) ? far : nullptr;
  }

  /** The same, with its keys. */
  Browser* connect() {
    Browser* const far = open();
    const uint32_t id = static_cast<uint32_t>(browsers.size());
    const bool up = far != nullptr && until([&] {
                      far->check();
                      far->shake();
                      return link_is(id, LinkState::connected);
                    });
    (void)(up && far->out ? far->hear() : std::vector<Bytes>());
    return up && far->out ? far : nullptr;
  }

  bool link_is(uint32_t id, LinkState state) const {
    return std::any_of(told.begin(), told.end(), [&](const Notice& notice) {
      return notice.kind == NoticeKind::link && notice.leg == id && notice.a == static_cast<uint32_t>(state);
    });
  }

  void tick() {
    plane->tick(now);
    now.us += Plane::tick_us;
    now.wall_us += Plane::tick_us;
    std::vector<Notice> some(100);
    some.resize(plane->take_notices(some.data(), some.size()));
    told.insert(told.end(), some.begin(), some.end());
  }
  /** Ticks until it is so, for two seconds at most: the port has a thread of its own. */
  template <typename So>
  bool until(So so) {
    for (int i = 0; i < 2000; i++) {
      tick();
      if (so()) return true;
      (void)::poll(nullptr, 0, 1);
    }
    return false;
  }

  Counters counters(uint32_t id) const {
    Counters counters;
    (void)plane->counters(id, counters);
    return counters;
  }
};

}  // namespace

TEST("two browsers in a room hear each other, each under keys of its own and as the source that SDP names") {
  Stage stage;
  Browser* const a = stage.connect();
  Browser* const b = stage.connect();
  CHECK(a != nullptr && b != nullptr);
  CHECK(stage.plane->open_room(100));
  CHECK(stage.plane->join(1, 100, false, 100, 100) && stage.plane->join(2, 100, false, 100, 100));
  const auto ends_as = [](const std::vector<Bytes>& heard, uint32_t ssrc, uint8_t fill) {
    return std::any_of(heard.begin(), heard.end(), [&](const Bytes& packet) {
      return packet.size() == rtp_header_bytes + frame_units && packet[11] == ssrc && packet[8] == 0 &&
             std::count(packet.begin() + rtp_header_bytes, packet.end(), fill) == frame_units;
    });
  };
  bool heard_by_a = false, heard_by_b = false;
  CHECK(stage.until([&] {
    (void)a->say(0x42);
    (void)b->say(0x37);
    heard_by_a = ends_as(a->hear(), 1, 0x37) || heard_by_a;
    heard_by_b = ends_as(b->hear(), 2, 0x42) || heard_by_b;
    return heard_by_a && heard_by_b && stage.plane->leg(1)->relays() && stage.plane->leg(2)->relays();
  }));
  CHECK(a->unopened == 0 && b->unopened == 0);
  CHECK(stage.counters(1).srtp_forged == 0 && stage.counters(2).srtp_forged == 0);
}

TEST("a browser that was checked and has no keys yet is sent nothing, and nothing that it sends is heard") {
  Stage stage;
  Browser* const far = stage.open();
  CHECK(far != nullptr);
  bool answered = false;
  CHECK(stage.until([&] {
    far->check();
    for (const Bytes& datagram : far->socket->receive()) answered = answered || datagram[0] == 1;
    return answered;
  }));
  Packet packet(1);
  for (int i = 0; i < 300; i++) {
    far->socket->send(far->port, Bytes(packet.bytes, packet.bytes + packet.count));
    stage.tick();
  }
  for (const Bytes& datagram : far->socket->receive()) CHECK(!is_media(datagram));
  CHECK(stage.counters(1).received == 0 && stage.counters(1).sent == 0);
}

TEST("of a browser's packets one under another key, in clear or sent again is dropped and counted") {
  Stage stage;
  Browser* const far = stage.connect();
  CHECK(far != nullptr);
  const Bytes first = far->say(0x42);
  (void)far->say(0x42);
  CHECK(stage.until([&] { return stage.counters(1).received == 2; }));
  const auto liar = sender(suite, Key(3));
  far->socket->send(far->port, sealed(*liar, 77, far->sequence));
  Packet clear(far->sequence);
  far->socket->send(far->port, Bytes(clear.bytes, clear.bytes + clear.count));
  far->socket->send(far->port, first);
  CHECK(stage.until([&] { return stage.counters(1).srtp_forged == 2 && stage.counters(1).srtp_replayed == 1; }));
  (void)far->say(0x42);
  CHECK(stage.until([&] { return stage.counters(1).received == 3; }));
  CHECK(stage.counters(1).srtp_forged == 2 && stage.counters(1).srtp_replayed == 1);
}

TEST("a browser that moves is followed with its check: it is heard and hears at its new address, under the same keys") {
  Stage stage;
  Browser* const far = stage.connect();
  CHECK(far != nullptr);
  (void)far->say(0x42);
  CHECK(stage.until([&] { return stage.counters(1).received == 1 && !far->hear().empty(); }));
  const std::unique_ptr<UdpSocket> before = std::exchange(far->socket, std::make_unique<UdpSocket>());
  const uint32_t strange = stage.port->counters().strange_packets;
  (void)far->say(0x42);
  CHECK(stage.until([&] { return stage.port->counters().strange_packets == strange + 1; }));
  CHECK(far->socket->receive().empty() && stage.counters(1).received == 1);

  CHECK(stage.until([&] {
    far->check();
    return !far->hear().empty();
  }));
  (void)before->receive();
  (void)far->say(0x42);
  CHECK(stage.until([&] { return stage.counters(1).received == 2; }));
  for (int i = 0; i < 10; i++) stage.tick();
  CHECK(before->receive().empty() && far->hear().size() >= 10 && far->unopened == 0);
  CHECK(stage.counters(1).srtp_forged == 0 && stage.counters(1).srtp_replayed == 0);
}

TEST("a browser whose numbers roll over is heard on, also where the packets around it overtake each other") {
  Stage stage;
  Browser* const far = stage.connect();
  CHECK(far != nullptr);
  far->sequence = 0xfff8;
  std::vector<Bytes> said;
  for (int i = 0; i < 20; i++) {
    Packet packet(far->sequence++);
    (void)far->out->protect(packet.bytes, packet.count);
    said.emplace_back(packet.bytes, packet.bytes + packet.count);
  }
  std::swap(said[7], said[8]);  // 65535 and 0
  for (const Bytes& datagram : said) far->socket->send(far->port, datagram);
  CHECK(stage.until([&] { return stage.counters(1).received == 20; }));
  CHECK(stage.counters(1).srtp_forged == 0 && stage.counters(1).lost == 0);
  far->socket->send(far->port, said[0]);
  CHECK(stage.until([&] { return stage.counters(1).srtp_replayed == 1; }));
}

TEST("a leg whose own numbers roll over is opened by the browser, each packet") {
  Stage stage;
  CHECK(stage.port != nullptr);
  Browser& far = *stage.browser();
  Leg leg(1, {7, 0, 0xfff8, 1, 1}, 60'000'000);
  leg.link(stage.port, stage.port->open_link({far.name, password}, far.client.fingerprint));
  leg.negotiate(Stage::terms(), stage.now);
  LinkPackets packets;
  Notices notices;
  for (int i = 0; i < 2000 && notices.empty(); i++) {
    far.check();
    far.shake();
    leg.drain_link(packets, stage.now, notices);
    (void)::poll(nullptr, 0, 1);
  }
  CHECK(far.in != nullptr && notices.size() == 1);
  for (int i = 0; i < 20; i++, stage.now.us += Plane::tick_us) leg.tick(stage.now, notices);
  const std::vector<Bytes> heard = far.hear();
  CHECK(heard.size() == 20 && far.unopened == 0);
  for (size_t i = 0; i < heard.size(); i++) CHECK(sequence_of(heard[i]) == static_cast<uint16_t>(0xfff8 + i));
}

TEST(
    "a browser's reports come by the socket of its audio, encrypted; ours go there too, and the last one is a "
    "goodbye") {
  Stage stage;
  Browser* const far = stage.connect();
  CHECK(far != nullptr);
  (void)far->say(0x42);
  CHECK(stage.until([&] { return stage.counters(1).received == 1; }));
  const Bytes report = sealed_report(*far->out, 77);
  const auto liar = sender(suite, Key(3));
  (void)sealed_report(*liar, 77);  // has the number of the report that is heard
  far->socket->send(far->port, report);
  far->socket->send(far->port, report);
  far->socket->send(far->port, sealed_report(*liar, 77));
  CHECK(stage.until([&] { return stage.counters(1).srtp_replayed == 1 && stage.counters(1).srtp_forged == 1; }));
  CHECK(stage.counters(1).received == 1);
  std::vector<Bytes> reports;
  for (int tick = 0; tick < 400; tick++) {
    stage.tick();
    if (tick % 50 == 49) {
      for (Bytes& each : far->hear(true)) reports.push_back(std::move(each));
    }
  }
  CHECK(!reports.empty());
  RtcpHeard heard;
  for (const Bytes& each : reports) CHECK(rtcp_parse(each.data(), each.size(), 77, heard) && heard.about_us);
  Counters counters;
  CHECK(stage.plane->close(1, counters, stage.now));
  const std::vector<Bytes> last = far->hear(true);
  CHECK(last.size() == 1 && far->unopened == 0 && last[0][last[0].size() - 7] == 203);  // BYE of one source
}

TEST("a browser that has gone, or whose consent has run out, is sent nothing more") {
  for (const bool says_goodbye : {true, false}) {
    Stage stage(says_goodbye ? WebrtcLink::consent_us : 400'000);
    Browser* const far = stage.connect();
    CHECK(far != nullptr);
    const auto liar = sender(suite, Key(3));
    far->socket->send(far->port, sealed(*liar, 77, far->sequence));
    CHECK(stage.until([&] { return stage.counters(1).srtp_forged == 1; }));
    if (says_goodbye) (void)::SSL_shutdown(far->client.ssl);
    for (const Bytes& datagram : far->client.step()) far->socket->send(far->port, datagram);
    const LinkState end = says_goodbye ? LinkState::closed : LinkState::lost;
    CHECK(stage.until([&] { return stage.link_is(1, end); }));
    (void)far->hear();
    const uint32_t sent = stage.counters(1).sent;
    (void)far->say(0x42);
    for (int i = 0; i < 300; i++) stage.tick();
    Counters counters;
    CHECK(stage.plane->close(1, counters, stage.now));
    for (const Bytes& datagram : far->socket->receive()) CHECK(!is_media(datagram));
    CHECK(counters.sent == sent && counters.received == 0 && counters.srtp_forged == 1);
  }
}

TEST("a browser that sends no checks while it speaks keeps its call, and has lost it once it is silent, too") {
  if (!webrtc_supported()) return;
  constexpr int64_t patience_us = 700'000;
  Stage stage(patience_us);
  Browser* const far = stage.connect();
  CHECK(far != nullptr);
  const int64_t began_us = now_of_system().us;  // the port looks at the time that it is
  while (now_of_system().us - began_us < 2 * patience_us) {
    stage.now = now_of_system();
    (void)far->say(0x42);
    stage.tick();
    (void)::poll(nullptr, 0, 10);
  }
  CHECK(stage.counters(1).received > 20 && !stage.link_is(1, LinkState::lost));
  CHECK(stage.until([&] { return stage.link_is(1, LinkState::lost); }));
}

TEST("a browser's leg that moves to another plane keeps its keys and its numbers") {
  Stage here;
  Stage there;
  Browser* const far = here.connect();
  CHECK(far != nullptr);
  const Bytes first = far->say(0x42);
  CHECK(here.until([&] { return here.counters(1).received == 1; }));
  CHECK(here.plane->move(1, there.plane->number(), here.now));
  there.now = here.now;
  const std::vector<Bytes> before = far->hear();
  far->socket->send(far->port, first);
  (void)far->say(0x42);
  CHECK(there.until([&] { return there.counters(1).received == 2 && there.counters(1).srtp_replayed == 1; }));
  const std::vector<Bytes> after = far->hear();
  CHECK(!before.empty() && !after.empty() && far->unopened == 0);
  CHECK(sequence_of(after[0]) == static_cast<uint16_t>(sequence_of(before.back()) + 1));
}

#endif
