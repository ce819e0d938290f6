#include <poll.h>

#include <cstring>
#include <string>
#include <vector>

#include "plane/webrtc/dtls.h"
#include "plane/webrtc/stun.h"
#include "plane/webrtc/webrtc_port.h"
#include "test/check.h"
#include "test/plane/loopback.h"
#include "test/plane/webrtc_client.h"

using namespace sidetone;
using test::Bytes;
using test::check;

namespace {

/** The sample request of RFC 5769 §2.1: a check of a controlled agent under the password below. */
const Bytes sample = {0x00, 0x01, 0x00, 0x58, 0x21, 0x12, 0xa4, 0x42, 0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86,
                      0xfa, 0x87, 0xdf, 0xae, 0x80, 0x22, 0x00, 0x10, 0x53, 0x54, 0x55, 0x4e, 0x20, 0x74, 0x65, 0x73,
                      0x74, 0x20, 0x63, 0x6c, 0x69, 0x65, 0x6e, 0x74, 0x00, 0x24, 0x00, 0x04, 0x6e, 0x00, 0x01, 0xff,
                      0x80, 0x29, 0x00, 0x08, 0x93, 0x2f, 0xf9, 0xb1, 0x51, 0x26, 0x3b, 0x36, 0x00, 0x06, 0x00, 0x09,
                      0x65, 0x76, 0x74, 0x6a, 0x3a, 0x68, 0x36, 0x76, 0x59, 0x20, 0x20, 0x20, 0x00, 0x08, 0x00, 0x14,
                      0x9a, 0xea, 0xa7, 0x0c, 0xbf, 0xd8, 0xcb, 0x56, 0x78, 0x1e, 0xf2, 0xb5, 0xb2, 0xd3, 0xf2, 0x49,
                      0xc1, 0xb5, 0x71, 0xa2, 0x80, 0x28, 0x00, 0x04, 0xe5, 0x7a, 0x3b, 0xcf};
constexpr char sample_password[] = "VOkJxbRl1RmTxUk/WvJxBt";

/** A port on this process's own address, and what it has counted. */
struct Stage {
  int error = 0;
  std::shared_ptr<WebrtcPort> port;
  Address at;

  explicit Stage(int64_t consent_us = WebrtcLink::consent_us)
      : port(WebrtcPort::open(test::own(0), error, consent_us)) {
    if (port) at = test::own(port->bound_port());
  }
  ~Stage() {
    if (port) port->retire();
  }

  /** Waits until it is so, for two seconds at most. */
  template <typename So>
  bool until(So so) const {
    for (int i = 0; i < 400; i++) {
      port->pump();
      if (so()) return true;
      ::poll(nullptr, 0, 5);
    }
    return false;
  }
};

Fingerprint some_fingerprint() { return Fingerprint(); }

}  // namespace

TEST("the sample of RFC 5769 is read, is authentic under its password and no other, and not when a bit is turned") {
  StunRequest request;
  CHECK(stun_read_request(sample.data(), sample.size(), request));
  CHECK(request.username == "evtj:h6vY");
  CHECK(request.controlled && !request.use_candidate && request.unknown_count == 0);
  if (!webrtc_supported()) return;
  CHECK(stun_authentic(sample.data(), request, sample_password));
  CHECK(!stun_authentic(sample.data(), request, "VOkJxbRl1RmTxUk/WvJxBu"));
  for (size_t at = 0; at < sample.size() * 8; at++) {
    Bytes turned = sample;
    turned[at / 8] = static_cast<uint8_t>(turned[at / 8] ^ 1 << at % 8);
    CHECK(!stun_read_request(turned.data(), turned.size(), request));
  }
}

TEST("an answer tells where the request came from, for both families, and ends with a right fingerprint") {
  for (const char* host : {"192.0.2.1", "2001:db8::17"}) {
    Address from;
    CHECK(from.parse(host, 32853));
    uint8_t out[stun_answer_max_bytes];
    const size_t count = stun_write_success(out, sample.data() + 8, from, sample_password);
    CHECK(stun_shaped(out, count));
    CHECK(out[20] == 0x00 && out[21] == 0x20);
    const uint16_t port = static_cast<uint16_t>((out[26] << 8 | out[27]) ^ 0x2112);
    CHECK(port == 32853);
    const uint32_t sum = static_cast<uint32_t>(out[count - 4]) << 24 | static_cast<uint32_t>(out[count - 3]) << 16 |
                         static_cast<uint32_t>(out[count - 2]) << 8 | out[count - 1];
    CHECK(sum == (stun_crc32(out, count - 8) ^ 0x5354554e));
  }
}

TEST("an error answer has its code, its reason and, with 420, what was unknown; the longest fits") {
  // A request whose attributes are these types, each empty, and a FINGERPRINT.
  const auto asking = [](const std::vector<uint16_t>& types) {
    Bytes out(sample.begin(), sample.begin() + 20);
    for (const uint16_t type : types) test::put(out, size_t{type} << 16, 4);
    out[2] = 0;
    out[3] = static_cast<uint8_t>(out.size() - 20 + 8);
    const uint32_t sum = stun_crc32(out.data(), out.size()) ^ 0x5354554e;
    test::put(out, 0x80280004, 4);
    test::put(out, sum, 4);
    return out;
  };
  const auto text = [](const uint8_t* at, size_t count) {
    return std::string(reinterpret_cast<const char*>(at), count);
  };
  StunRequest request;
  uint8_t out[stun_answer_max_bytes];
  const Bytes three = asking({0x7777, 0x0025, 0xc057, 0x0003, 0x001c});
  CHECK(stun_read_request(three.data(), three.size(), request));
  size_t count = stun_write_unknown(out, request, sample_password);
  CHECK(stun_shaped(out, count) && out[0] == 0x01 && out[1] == 0x11);
  CHECK(text(out + 20, 8) == std::string("\x00\x09\x00\x15\x00\x00\x04\x14", 8));
  CHECK(text(out + 28, 20) == std::string("Unknown Attribute\0\0\0", 20));
  CHECK(text(out + 48, 12) == std::string("\x00\x0a\x00\x06\x77\x77\x00\x03\x00\x1c\x00\x00", 12));
  CHECK(count == 60 + 24 + 8);

  const Bytes many = asking(std::vector<uint16_t>(stun_unknown_max + 4, 0x7777));
  CHECK(stun_read_request(many.data(), many.size(), request));
  count = stun_write_unknown(out, request, sample_password);
  CHECK(count <= sizeof out && stun_shaped(out, count) && out[51] == 2 * stun_unknown_max);

  CHECK(stun_read_request(sample.data(), sample.size(), request));
  count = stun_write_role_conflict(out, request, sample_password);
  CHECK(stun_shaped(out, count));
  CHECK(text(out + 20, 24) == std::string("\x00\x09\x00\x11\x00\x00\x04\x57Role Conflict\0\0\0", 24));
}

TEST("a port answers a check under the right password, and nothing else; media counts from where checks came") {
  if (!webrtc_supported()) return;
  Stage stage;
  CHECK(stage.port != nullptr);
  const auto link = stage.port->open_link({"abcdefgh", "a password of the leg"}, some_fingerprint());
  test::UdpSocket browser;
  test::UdpSocket stranger;
  const Bytes media(172, 0x80);
  browser.send(stage.at, media);
  browser.send(stage.at, check("abcdefgh", "another password", true));
  browser.send(stage.at, check("unknown", "a password of the leg", true));
  CHECK(stage.until([&] {
    const WebrtcCounters now = stage.port->counters();
    return now.strange_packets == 1 && now.forged_checks == 1 && now.unknown_checks == 1;
  }));
  CHECK(browser.receive().empty());

  browser.send(stage.at, check("abcdefgh", "a password of the leg", true));
  std::vector<Bytes> answers;
  CHECK(stage.until([&] { return (answers = browser.receive()).size() == 1; }));
  CHECK(answers[0][0] == 0x01 && answers[0][1] == 0x01);
  uint32_t version = 0;
  CHECK(link->remote(version) == browser.here());

  for (size_t i = 0; i < WebrtcLink::packets_max + 10; i++) {
    browser.send(stage.at, media);
    if (i % 32 == 0) stage.port->pump();
  }
  stranger.send(stage.at, media);
  CHECK(stage.until([&] { return stage.port->counters().strange_packets == 2 && link->overflown() > 0; }));
  LinkPackets packets;
  link->take(packets);
  CHECK(packets.entries.size() == WebrtcLink::packets_max);
  CHECK(link->state() == LinkState::checking);
  stage.port->close_link(link);
}

TEST("a host that floods the port has a share of what waits for its thread, and no more") {
  if (!webrtc_supported()) return;
  Stage stage;
  // Without a leg nobody but `pump` empties the socket, which holds these.
  test::UdpSocket flood;
  for (int i = 0; i < 200; i++) flood.send(stage.at, check("unknown", "a password of nobody", true));
  const uint32_t over = 200 - WebrtcPort::control_share;
  CHECK(stage.until([&] {
    const WebrtcCounters now = stage.port->counters();
    return now.unknown_checks + now.overflown_packets == 200;
  }));
  CHECK(stage.port->counters().overflown_packets == over);
  flood.send(stage.at, check("unknown", "a password of nobody", true));
  CHECK(stage.until([&] { return stage.port->counters().unknown_checks == WebrtcPort::control_share + 1u; }));
}

TEST("an ICE restart moves the far end by its new name; the name before goes on being answered and moves nothing") {
  if (!webrtc_supported()) return;
  Stage stage;
  const auto link = stage.port->open_link({"oldname1", "the old password of it"}, some_fingerprint());
  test::UdpSocket before;
  test::UdpSocket after;
  before.send(stage.at, check("oldname1", "the old password of it", true));
  uint32_t version = 0;
  CHECK(stage.until([&] { return link->remote(version) == before.here(); }));
  stage.port->restart_link(link, {"newname1", "the new password of it"});
  after.send(stage.at, check("newname1", "the new password of it", true));
  CHECK(stage.until([&] { return link->remote(version) == after.here(); }));
  before.send(stage.at, check("oldname1", "the old password of it", true));
  CHECK(stage.until([&] { return before.receive().size() > 0; }));
  CHECK(link->remote(version) == after.here());
  stage.port->close_link(link);
}

TEST("the credentials in use outlive restarts whose answers are lost, and go with the first restart after newer ones") {
  if (!webrtc_supported()) return;
  Stage stage;
  const auto link = stage.port->open_link({"firstone", "the first password"}, some_fingerprint());
  test::UdpSocket browser;
  test::UdpSocket moved;
  uint32_t version = 0;
  const auto is_answered = [&](const test::UdpSocket& from, const char* ufrag, const char* password) {
    (void)from.receive();
    const uint32_t unknown = stage.port->counters().unknown_checks;
    from.send(stage.at, check(ufrag, password, true));
    bool answered = false;
    const bool decided = stage.until([&] {
      answered = !from.receive().empty();
      return answered || stage.port->counters().unknown_checks > unknown;
    });
    return decided && answered;
  };
  CHECK(is_answered(browser, "firstone", "the first password"));
  stage.port->restart_link(link, {"lostname", "a password that is lost"});
  stage.port->restart_link(link, {"lostnam2", "another that is lost"});
  stage.port->restart_link(link, {"lastname", "the last password"});
  CHECK(is_answered(browser, "firstone", "the first password"));
  CHECK(!is_answered(browser, "lostname", "a password that is lost"));
  CHECK(is_answered(moved, "firstone", "the first password"));
  CHECK(link->remote(version) == moved.here());
  CHECK(is_answered(browser, "lastname", "the last password"));
  CHECK(link->remote(version) == browser.here());
  CHECK(is_answered(moved, "firstone", "the first password"));
  CHECK(link->remote(version) == browser.here());

  stage.port->restart_link(link, {"afterall", "the password after all"});
  CHECK(!is_answered(browser, "firstone", "the first password"));
  CHECK(is_answered(browser, "lastname", "the last password"));
  CHECK(is_answered(browser, "afterall", "the password after all"));
  stage.port->close_link(link);
}

TEST("an address that a link was heard from a moment ago is not taken by a check of another link; a free one is") {
  if (!webrtc_supported()) return;
  Stage stage;
  const auto link = stage.port->open_link({"abcdefgh", "a password of the leg"}, some_fingerprint());
  const auto other = stage.port->open_link({"stranger", "his own password too"}, some_fingerprint());
  test::UdpSocket browser;  // the stranger writes its address on his own checks
  uint32_t version = 0;
  browser.send(stage.at, check("abcdefgh", "a password of the leg", true));
  CHECK(stage.until([&] { return link->remote(version) == browser.here(); }));
  browser.send(stage.at, check("stranger", "his own password too", false));
  CHECK(stage.until([&] { return stage.port->counters().forged_checks == 1; }));
  browser.send(stage.at, Bytes(172, 0x80));
  CHECK(stage.until([&] { return link->waiting() || other->waiting(); }));
  CHECK(link->waiting() && !other->waiting());
  CHECK(other->remote(version).empty());

  stage.port->close_link(link);
  CHECK(stage.until([&] {
    browser.send(stage.at, check("stranger", "his own password too", true));
    return other->remote(version) == browser.here();
  }));
  browser.send(stage.at, Bytes(172, 0x80));
  CHECK(stage.until([&] { return other->waiting(); }));
  stage.port->close_link(other);
}

TEST("a link owns an address for ten seconds after a check or a packet came from there, and while it lives") {
  WebrtcLink link({"abcdefgh", "a password of the leg"}, nullptr, 0);
  Address far, elsewhere;
  CHECK(far.parse("192.0.2.1", 4000) && elsewhere.parse("192.0.2.1", 4001));
  CHECK(!link.owns(far, 0));
  (void)link.checked(far, true, "abcdefgh", 1'000'000);
  CHECK(link.owns(far, 10'900'000) && !link.owns(far, 11'000'000) && !link.owns(elsewhere, 1'000'000));
  link.hear(far, 9'000'000);
  link.hear(elsewhere, 9'000'000);
  CHECK(link.owns(far, 18'900'000) && !link.owns(far, 19'000'000) && !link.owns(elsewhere, 9'000'000));
  link.set_state(LinkState::lost);
  CHECK(!link.owns(far, 9'000'000));
}

TEST("of too many addresses the one that was unheard longest is forgotten, but never the one that media goes to") {
  WebrtcLink link({"abcdefgh", "a password of the leg"}, nullptr, 0);
  Address first, second;
  CHECK(first.parse("192.0.2.1", 4000) && second.parse("192.0.2.1", 4001));
  for (uint16_t i = 0; i <= WebrtcLink::addresses_max; i++) {
    Address from;
    CHECK(from.parse("192.0.2.1", static_cast<uint16_t>(4000 + i)));
    const Address forgotten = link.checked(from, false, "abcdefgh", i);
    CHECK(i < WebrtcLink::addresses_max ? forgotten.empty() : forgotten == second);
  }
  CHECK(link.may_come_from(first) && !link.may_come_from(second));
}

TEST("a far end that is not heard for as long as consent lasts is lost, once") {
  if (!webrtc_supported()) return;
  Stage stage(150'000);
  const auto link = stage.port->open_link({"abcdefgh", "a password of the leg"}, some_fingerprint());
  CHECK(stage.until([&] { return link->state() == LinkState::lost; }));
  CHECK(stage.port->counters().lost_links == 1);
  stage.port->close_link(link);
}

TEST("checks from elsewhere do not keep a link alive whose far end is not heard where it wants its media") {
  if (!webrtc_supported()) return;
  Stage stage(150'000);
  const auto link = stage.port->open_link({"abcdefgh", "a password of the leg"}, some_fingerprint());
  test::UdpSocket browser;
  test::UdpSocket victim;
  uint32_t version = 0;
  browser.send(stage.at, check("abcdefgh", "a password of the leg", true));
  CHECK(stage.until([&] { return link->remote(version) == browser.here(); }));
  victim.send(stage.at, check("abcdefgh", "a password of the leg", true));
  CHECK(stage.until([&] { return link->remote(version) == victim.here(); }));
  CHECK(stage.until([&] {
    browser.send(stage.at, check("abcdefgh", "a password of the leg", false));
    return link->state() == LinkState::lost;
  }));
  stage.port->close_link(link);
}

TEST("media turns from an address that is silent for five seconds to the one heard last, if any is heard") {
  Address real, silent, third;
  CHECK(real.parse("192.0.2.1", 4000) && silent.parse("192.0.2.2", 4000) && third.parse("192.0.2.1", 4001));
  uint32_t version = 0;
  WebrtcLink link({"abcdefgh", "a password of the leg"}, nullptr, 7);
  CHECK(link.look(1'000'000) == 7);
  (void)link.checked(third, false, "abcdefgh", 1'000'000);
  (void)link.checked(real, true, "abcdefgh", 1'000'000);
  (void)link.checked(silent, true, "abcdefgh", 10'000'000);
  CHECK(link.remote(version) == silent);  // a browser that moves is followed at once
  const uint32_t before = version;
  (void)link.checked(real, false, "abcdefgh", 12'000'000);
  link.hear(real, 14'000'000);
  CHECK(link.look(14'900'000) == 10'000'000 && link.remote(version) == silent && version == before);
  CHECK(link.look(15'000'000) == 14'000'000 && link.remote(version) == real && version != before);
  // Media stays where it is when nothing is heard from anywhere, and when packets come between rare checks.
  CHECK(link.look(30'000'000) == 14'000'000 && link.remote(version) == real);
  link.hear(real, 40'000'000);
  (void)link.checked(third, false, "abcdefgh", 41'000'000);
  CHECK(link.look(44'000'000) == 40'000'000 && link.remote(version) == real);
}

TEST("a flood of checks with a known name and no password costs a few hashes a second, and the queue is bounded") {
  if (!webrtc_supported()) return;
  Stage stage;
  const auto link = stage.port->open_link({"abcdefgh", "a password of the leg"}, some_fingerprint());
  test::UdpSocket flooder;
  const Bytes forged = check("abcdefgh", "another password", true);
  for (int i = 0; i < 2000; i++) flooder.send(stage.at, forged);
  CHECK(stage.until([&] { return stage.port->counters().forged_checks > WebrtcLink::forged_a_second_max; }));
  CHECK(flooder.receive().empty());
  test::UdpSocket browser;
  CHECK(stage.until([&] {
    browser.send(stage.at, check("abcdefgh", "a password of the leg", true));
    uint32_t version = 0;
    return link->remote(version) == browser.here();
  }));
  stage.port->close_link(link);
}

TEST("while strangers flood a port of few links it is emptied between the ticks too, and left to them afterwards") {
  if (!webrtc_supported()) return;
  Stage stage(100'000);
  const auto link = stage.port->open_link({"abcdefgh", "a password of the leg"}, some_fingerprint());
  CHECK(stage.until([&] { return link->state() == LinkState::lost; }));  // no handshake keeps the thread at the socket
  test::UdpSocket stranger;
  const Bytes junk(172, 0x80);
  const auto comes_unasked = [&] {
    const uint32_t before = stage.port->counters().strange_packets;
    stranger.send(stage.at, junk);
    for (int i = 0; i < 20 && stage.port->counters().strange_packets == before; i++) (void)::poll(nullptr, 0, 5);
    return stage.port->counters().strange_packets != before;
  };
  CHECK(!comes_unasked());
  for (int i = 0; i < 200; i++) stranger.send(stage.at, junk);
  stage.port->pump();
  CHECK(comes_unasked());
  bool left = false;
  for (int i = 0; i < 20 && !left; i++) left = !comes_unasked();
  CHECK(left);
  stage.port->close_link(link);
}

#ifdef SIDETONE_WEBRTC

namespace {

const DtlsEndpoint::Out nowhere = [](const uint8_t*, size_t) {};

}  // namespace

TEST("a handshake gives both sides the same keys, with a ClientHello in one datagram or in many") {
  for (const long mtu : {1200L, 256L}) {
    test::DtlsClient client(mtu);
    const auto server = DtlsEndpoint::create(client.identity, client.fingerprint);
    CHECK(server != nullptr);
    CHECK(client.meet(*server) <= DtlsEndpoint::mtu);
    CHECK(server->state() == DtlsEndpoint::State::connected);
    CHECK(client.sent[0].size() < 300 || mtu > 256);
    CHECK(server->keys().suite == SrtpSuite::aead_aes_128_gcm);
    uint8_t material[56];
    constexpr char label[] = "EXTRACTOR-dtls_srtp";
    CHECK(::SSL_export_keying_material(client.ssl, material, sizeof material, label, sizeof label - 1, nullptr, 0, 0) ==
          1);
    CHECK(std::memcmp(server->keys().receive, material, 16) == 0);
    CHECK(std::memcmp(server->keys().send, material + 16, 16) == 0);
    CHECK(std::memcmp(server->keys().receive + 16, material + 32, 12) == 0);
    CHECK(std::memcmp(server->keys().send + 16, material + 44, 12) == 0);
  }
}

TEST("a certificate with another fingerprint fails the handshake, and so does a far end without SRTP") {
  test::DtlsClient client;
  Fingerprint other = client.fingerprint;
  other.bytes[31] = static_cast<uint8_t>(other.bytes[31] ^ 1);
  const auto server = DtlsEndpoint::create(client.identity, other);
  (void)client.meet(*server);
  CHECK(server->state() == DtlsEndpoint::State::failed);

  test::DtlsClient plain(1200, "SRTP_AES128_CM_SHA1_32");
  const auto picky = DtlsEndpoint::create(plain.identity, plain.fingerprint);
  (void)plain.meet(*picky);
  CHECK(picky->state() == DtlsEndpoint::State::failed);
}

TEST("datagrams that are replayed after the handshake, or are none, change nothing; a goodbye ends it") {
  test::DtlsClient client;
  const auto server = DtlsEndpoint::create(client.identity, client.fingerprint);
  (void)client.meet(*server);
  CHECK(server->state() == DtlsEndpoint::State::connected);
  const SrtpKeys keys = server->keys();
  for (const Bytes& datagram : client.sent) server->take(datagram.data(), datagram.size(), nowhere);
  const Bytes junk(60, 22);
  server->take(junk.data(), junk.size(), nowhere);
  CHECK(server->state() == DtlsEndpoint::State::connected);
  CHECK(std::memcmp(&keys, &server->keys(), sizeof keys) == 0);
  (void)::SSL_shutdown(client.ssl);
  for (const Bytes& datagram : client.step()) server->take(datagram.data(), datagram.size(), nowhere);
  CHECK(server->state() == DtlsEndpoint::State::closed);
}

TEST("what a far end sends over DTLS beside its audio is passed over, and the goodbye behind it ends the call") {
  test::DtlsClient client;
  const auto server = DtlsEndpoint::create(client.identity, client.fingerprint);
  (void)client.meet(*server);
  const Bytes data(1000, 0x55);  // as of a data channel
  for (int i = 0; i < 3; i++) {
    CHECK(::SSL_write(client.ssl, data.data(), static_cast<int>(data.size())) == 1000);
    for (const Bytes& datagram : client.step()) server->take(datagram.data(), datagram.size(), nowhere);
  }
  CHECK(server->state() == DtlsEndpoint::State::connected);
  (void)::SSL_shutdown(client.ssl);
  for (const Bytes& datagram : client.step()) server->take(datagram.data(), datagram.size(), nowhere);
  CHECK(server->state() == DtlsEndpoint::State::closed);
}

TEST("a handshake that never comes to an end is given up after so many datagrams") {
  test::DtlsClient client;
  const auto server = DtlsEndpoint::create(client.identity, client.fingerprint);
  const std::vector<Bytes> hello = client.step();
  for (uint32_t i = 0; i <= DtlsEndpoint::datagrams_max; i++) server->take(hello[0].data(), hello[0].size(), nowhere);
  CHECK(server->state() == DtlsEndpoint::State::failed);
}

#endif
