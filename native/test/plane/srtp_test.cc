#include "plane/srtp/srtp_session.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "plane/srtp/leg_cipher.h"
#include "test/check.h"
#include "test/plane/bench.h"
#include "test/plane/srtp_packets.h"

using namespace sidetone;
using test::Bench;
using test::FarEnd;
using namespace test::srtp;

namespace {

std::vector<uint8_t> octets(const std::string& hex) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return out;
}

/** The far end of an encrypted leg. */
struct SecretEnd {
  SecretEnd(FarEnd& far, SrtpSuite suite, const Key& ours, const Key& theirs)
      : far(far), out(sender(suite, ours)), in(receiver(suite, theirs)) {}

  /** Encrypts and sends one frame of `fill`; returns the datagram. */
  std::vector<uint8_t> say(uint8_t fill) {
    Packet packet(far.sequence++, fill);
    (void)out->protect(packet.bytes, packet.count);
    std::vector<uint8_t> datagram(packet.bytes, packet.bytes + packet.count);
    again(datagram);
    return datagram;
  }
  void again(const std::vector<uint8_t>& datagram) { socket_send(datagram); }
  /** The payloads of what came since the last call; an empty one of a packet that is not under the key. */
  std::vector<std::vector<uint8_t>> heard() {
    std::vector<std::vector<uint8_t>> payloads;
    for (auto& packet : far.packets()) {
      packet.resize(packet.size() + srtp_overhead_bytes);
      size_t count = packet.size() - srtp_overhead_bytes;
      const bool ok = in->unprotect(packet.data(), count) == SrtpSession::Verdict::ok;
      payloads.emplace_back(packet.begin() + rtp_header_bytes, ok ? packet.begin() + static_cast<std::ptrdiff_t>(count)
                                                                  : packet.begin() + rtp_header_bytes);
    }
    return payloads;
  }
  void socket_send(const std::vector<uint8_t>& datagram) {
    (void)send_datagram(far.fd(), &far.leg, datagram.data(), datagram.size());
  }

  FarEnd& far;
  std::unique_ptr<SrtpSession> out;
  std::unique_ptr<SrtpSession> in;
};

Negotiated terms_of(FarEnd& far) {
  Negotiated agreed;
  agreed.rtp = far.here();
  agreed.rtcp = test::nowhere();
  agreed.event_payload_type = -1;
  return agreed;
}

SrtpKeys keys_of(SrtpSuite suite, const Key& send, const Key& receive) {
  SrtpKeys keys;
  keys.suite = suite;
  std::memcpy(keys.send, send.bytes, sizeof keys.send);
  std::memcpy(keys.receive, receive.bytes, sizeof keys.receive);
  return keys;
}

Counters counters_of(Bench& bench, uint32_t leg) {
  Counters counters;
  (void)bench.plane->counters(leg, counters);
  return counters;
}

}  // namespace

TEST("what one side protects the other side opens, in every suite, and nobody reads it between") {
  if (!able()) return;
  for (const SrtpSuite suite : suites) {
    const Key key(1);
    auto out = sender(suite, key);
    auto in = receiver(suite, key);
    CHECK(out && in);
    for (uint16_t sequence = 65'500; sequence != 100; sequence++) {  // over a roll-over
      const Packet said(sequence);
      Packet packet = said;
      CHECK(out->protect(packet.bytes, packet.count));
      CHECK(packet.count > said.count && packet.count <= said.count + srtp_overhead_bytes);
      CHECK(std::memcmp(packet.bytes, said.bytes, rtp_header_bytes) == 0);
      CHECK(std::memcmp(packet.bytes + rtp_header_bytes, said.bytes + rtp_header_bytes, frame_units) != 0);
      CHECK(in->unprotect(packet.bytes, packet.count) == SrtpSession::Verdict::ok);
      CHECK(packet == said);
    }
  }
}

TEST("packets that the library wrote with ciphers of its own are opened, and made again octet for octet") {
  if (!able()) return;
  // They were written by libsrtp2 2.5.0 with NSS under a master key of 0, 1, 2 and so on: text of 16 times 0xab.
  struct Example {
    SrtpSuite suite;
    const char* rtp;
    const char* rtcp;
  };
  const Example examples[] = {
      {SrtpSuite::aes_cm_128_hmac_sha1_80,
       "800f1234decafbadcafebabec8f5e0214236e5fde9cbd62d47b0a0914abc4786f3c58a32060f",
       "81c80005cafebabe2dcbd1a0f763810879d398df743f4f7d80000001ddc57f60c3485f92e761"},
      {SrtpSuite::aes_cm_128_hmac_sha1_32, "800f1234decafbadcafebabec8f5e0214236e5fde9cbd62d47b0a0914abc4786",
       "81c80005cafebabe2dcbd1a0f763810879d398df743f4f7d80000001ddc57f60c3485f92e761"},
      {SrtpSuite::aead_aes_128_gcm,
       "800f1234decafbadcafebabe4ad7d8a55fb3fd902db557c94b415ecd17ea3bd1754d1f2808104e868c1cf597",
       "81c80005cafebabe60b68cb97100e4206ca1c1b44a69f01754b6cc67c5ed8c1dd19db3860d39b57880000001"},
      {SrtpSuite::aead_aes_256_gcm,
       "800f1234decafbadcafebabed54ed632a76bff3fa2efbb5597a5d5e87c07497c6b89729d1291317aeef11ba7",
       "81c80005cafebabe12d596ce61c485e7bae16103356375e9b1f8bf0704f0d819bacb5af1a37a464b80000001"},
  };
  for (const Example& example : examples) {
    uint8_t key[srtp_key_max_bytes];
    for (size_t i = 0; i < sizeof key; i++) key[i] = static_cast<uint8_t>(i);
    auto in = SrtpSession::create(example.suite, key, SrtpSession::Direction::receive);
    auto out = SrtpSession::create(example.suite, key, SrtpSession::Direction::send);
    std::vector<uint8_t> packet = octets(example.rtp);
    size_t count = packet.size();
    CHECK(in->unprotect(packet.data(), count) == SrtpSession::Verdict::ok && count == 28);
    CHECK(std::vector<uint8_t>(packet.begin() + 12, packet.begin() + 28) == std::vector<uint8_t>(16, 0xab));
    packet.resize(28 + srtp_overhead_bytes);
    CHECK(out->protect(packet.data(), count));
    packet.resize(count);
    CHECK(packet == octets(example.rtp));

    std::vector<uint8_t> report = octets(example.rtcp);
    count = report.size();
    CHECK(in->unprotect_rtcp(report.data(), count) == SrtpSession::Verdict::ok && count == 24);
    CHECK(std::vector<uint8_t>(report.begin() + 8, report.begin() + 24) == std::vector<uint8_t>(16, 0xab));
    report.resize(24 + srtp_overhead_bytes);
    CHECK(out->protect_rtcp(report.data(), count));
    report.resize(count);
    CHECK(report == octets(example.rtcp));
  }
}

TEST("sources and an extension in the header stay in clear, and are authentic") {
  if (!able()) return;
  for (const SrtpSuite suite : suites) {
    // Two sources, an extension of one word, four octets of text.
    std::vector<uint8_t> said = octets("9200123400000000000000070000000100000002bede000101020304abababab");
    constexpr size_t header = 12 + 8 + 4;
    said.resize(said.size() + srtp_overhead_bytes);
    std::vector<uint8_t> packet = said;
    size_t count = said.size() - srtp_overhead_bytes;
    auto out = sender(suite, Key(1));
    auto in = receiver(suite, Key(1));
    const size_t clear = count;
    CHECK(out->protect(packet.data(), count));
    CHECK(std::memcmp(packet.data(), said.data(), header + 4) == 0);
    CHECK(std::memcmp(packet.data() + header + 4, said.data() + header + 4, 4) != 0);
    std::vector<uint8_t> changed = packet;
    changed[header] ^= 1;
    size_t also = count;
    CHECK(in->unprotect(changed.data(), also) == SrtpSession::Verdict::forged);
    CHECK(in->unprotect(packet.data(), count) == SrtpSession::Verdict::ok && count == clear);
    CHECK(std::memcmp(packet.data(), said.data(), clear) == 0);
  }
}

TEST("a packet under another key, changed on its way, or in clear is forged; one that came before is replayed") {
  if (!able()) return;
  for (const SrtpSuite suite : suites) {
    auto out = sender(suite, Key(1));
    auto other = sender(suite, Key(2));
    auto in = receiver(suite, Key(1));
    Packet wrong(1), changed(2), clear(3), good(4);
    CHECK(other->protect(wrong.bytes, wrong.count) && out->protect(changed.bytes, changed.count) &&
          out->protect(good.bytes, good.count));
    changed.bytes[40] ^= 1;
    const Packet again = good;
    Packet copy = again;
    CHECK(in->unprotect(wrong.bytes, wrong.count) == SrtpSession::Verdict::forged);
    CHECK(in->unprotect(changed.bytes, changed.count) == SrtpSession::Verdict::forged);
    CHECK(in->unprotect(clear.bytes, clear.count) == SrtpSession::Verdict::forged);
    CHECK(in->unprotect(good.bytes, good.count) == SrtpSession::Verdict::ok);
    CHECK(in->unprotect(copy.bytes, copy.count) == SrtpSession::Verdict::replayed);
    for (size_t count = 0; count < 30; count++) {
      Packet cut = again;
      cut.count = count;
      CHECK(in->unprotect(cut.bytes, cut.count) != SrtpSession::Verdict::ok);
      CHECK(in->unprotect_rtcp(cut.bytes, cut.count) != SrtpSession::Verdict::ok);
    }
  }
}

TEST("packets may overtake each other within the replay window; one behind it is replayed") {
  if (!able()) return;
  auto out = sender(suites[0], Key(1));
  auto in = receiver(suites[0], Key(1));
  std::vector<Packet> sent;
  for (uint16_t sequence = 0; sequence < 300; sequence++) {
    sent.emplace_back(sequence);
    CHECK(out->protect(sent.back().bytes, sent.back().count));
  }
  const auto opens = [&](size_t at) { return in->unprotect(sent[at].bytes, sent[at].count); };
  CHECK(opens(200) == SrtpSession::Verdict::ok);
  CHECK(opens(200 - SrtpSession::window + 2) == SrtpSession::Verdict::ok);
  CHECK(opens(199) == SrtpSession::Verdict::ok);
  CHECK(opens(200 - SrtpSession::window - 2) == SrtpSession::Verdict::replayed);
}

TEST("a number is protected once: no two packets are encrypted alike") {
  if (!able()) return;
  for (const SrtpSuite suite : suites) {
    auto out = sender(suite, Key(1));
    Packet first(7), second(7, 0x66);
    CHECK(out->protect(first.bytes, first.count) && !out->protect(second.bytes, second.count));
  }
}

TEST("reports are encrypted too, and a replayed one is known") {
  if (!able()) return;
  for (const SrtpSuite suite : suites) {
    auto out = sender(suite, Key(1));
    auto in = receiver(suite, Key(1));
    alignas(8) uint8_t report[rtcp_max_bytes + srtp_overhead_bytes];
    size_t count = rtcp_write(report, 77, nullptr, nullptr, "someone", true);
    const std::vector<uint8_t> said(report, report + count);
    CHECK(out->protect_rtcp(report, count) && count > said.size());
    std::vector<uint8_t> copy(report, report + count);
    CHECK(in->unprotect_rtcp(report, count) == SrtpSession::Verdict::ok);
    CHECK(std::vector<uint8_t>(report, report + count) == said);
    std::memcpy(report, copy.data(), copy.size());
    count = copy.size();
    CHECK(in->unprotect_rtcp(report, count) == SrtpSession::Verdict::replayed);
  }
}

TEST("a far end that changes its key after a roll-over is heard, whether or not it counts roll-overs anew") {
  if (!able()) return;
  for (const bool anew : {true, false}) {
    Bench bench;
    FarEnd* far = bench.open();
    CHECK(far != nullptr);
    const SrtpKeys before = keys_of(suites[0], Key(1), Key(2));
    const SrtpKeys after = keys_of(suites[2], Key(3), Key(4));
    CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &before));
    SecretEnd old(*far, suites[0], Key(2), Key(1));
    SecretEnd renewed(*far, suites[2], Key(4), Key(3));
    far->sequence = 0xfff0;
    for (int i = 0; i < 32; i++) (void)old.say(1), bench.tick();
    CHECK(counters_of(bench, 1).received == 32);
    if (!anew) {  // the new key has protected numbers before, as that of a far end that goes on counting
      for (const uint16_t sequence : {0xfff0, 0}) (void)sealed(*renewed.out, 77, sequence);
    }
    CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &after));
    std::vector<std::vector<uint8_t>> said;
    for (int i = 0; i < 5; i++) said.push_back(renewed.say(2)), bench.tick();
    CHECK(counters_of(bench, 1).received == 37);
    for (const auto& datagram : said) renewed.again(datagram);
    bench.tick();
    CHECK(counters_of(bench, 1).received == 37 && counters_of(bench, 1).srtp_replayed == 5);
  }
}

TEST("an encrypted leg sends nothing in clear, hears what is authentic only, and counts what it dropped") {
  if (!able()) return;
  for (const SrtpSuite suite : suites) {
    Bench bench;
    FarEnd* far = bench.open();
    CHECK(far != nullptr);
    const SrtpKeys keys = keys_of(suite, Key(1), Key(2));
    CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &keys));
    SecretEnd end(*far, suite, Key(2), Key(1));
    SecretEnd liar(*far, suite, Key(3), Key(1));
    std::vector<uint8_t> last;
    for (int i = 0; i < 10; i++) {
      last = end.say(0x42);
      bench.tick();
    }
    end.again(last);
    (void)liar.say(0x42);
    far->say(std::vector<uint8_t>(frame_units, 0x42));
    bench.tick();
    const Counters counters = counters_of(bench, 1);
    CHECK(counters.received == 10 && counters.srtp_replayed == 1 && counters.srtp_forged == 2);
    const auto heard = end.heard();
    CHECK(heard.size() == 11 && counters.sent == 11);
    for (const auto& payload : heard) CHECK(payload == std::vector<uint8_t>(frame_units, 0xff));  // silence
  }
}

TEST("a datagram that is too large for an encrypted leg is passed over, whoever sends it, and the leg hears on") {
  if (!able()) return;
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  const SrtpKeys keys = keys_of(suites[0], Key(1), Key(2));
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &keys));
  SecretEnd end(*far, suites[0], Key(2), Key(1));
  for (size_t more = 1; more < 100; more++)
    far->say(std::vector<uint8_t>(Datagram::bytes_max - rtp_header_bytes + more));
  bench.tick();
  (void)end.say(0x42);
  bench.tick();
  CHECK(counters_of(bench, 1).received == 1);
}

TEST("a leg that turns to RTP in clear and back keeps the count of what was dropped before") {
  if (!able()) return;
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  const SrtpKeys keys = keys_of(suites[0], Key(1), Key(2));
  for (uint32_t turn = 1; turn <= 2; turn++) {
    CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &keys));
    SecretEnd end(*far, suites[0], Key(2), Key(1));
    for (int i = 0; i < 5; i++) end.again(end.say(0x42)), bench.tick();
    far->say(std::vector<uint8_t>(frame_units, 0x42));
    bench.tick();
    CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now));
    const Counters before = counters_of(bench, 1);
    CHECK(before.srtp_forged == turn && before.srtp_replayed == 5 * turn);
    for (int i = 0; i < 5; i++) far->say(std::vector<uint8_t>(frame_units, 0x42)), bench.tick();
    const Counters after = counters_of(bench, 1);
    CHECK(after.received == before.received + 5 && after.srtp_forged == turn && after.srtp_replayed == 5 * turn);
  }
}

TEST("a far end that comes back after a time in clear goes on where it was, and what it said then is a replay") {
  if (!able()) return;
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  const SrtpKeys first = keys_of(suites[0], Key(1), Key(2));
  const SrtpKeys again = keys_of(suites[0], Key(3), Key(2));
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &first));
  SecretEnd person(*far, suites[0], Key(2), Key(1));
  far->sequence = 0xfff0;
  std::vector<uint8_t> said;
  for (int i = 0; i < 32; i++) said = person.say(1), bench.tick();
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now));
  for (int i = 0; i < 5; i++) far->say(std::vector<uint8_t>(frame_units, 0x42)), bench.tick();
  const Counters before = counters_of(bench, 1);
  CHECK(before.received == 37);
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &again));
  person.again(said);
  for (int i = 0; i < 5; i++) (void)person.say(3), bench.tick();
  const Counters after = counters_of(bench, 1);
  CHECK(after.received == before.received + 5 && after.srtp_forged == 0 && after.srtp_replayed == 1);
}

TEST("packets of 10 to 60 ms and keys leave encrypted") {
  if (!able()) return;
  for (const uint32_t ptime : {10u, 30u, 60u}) {
    Bench bench;
    FarEnd* far = bench.open();
    CHECK(far != nullptr);
    const SrtpKeys keys = keys_of(suites[0], Key(1), Key(2));
    Negotiated agreed = terms_of(*far);
    agreed.ptime_ms = ptime;
    agreed.event_payload_type = 101;
    CHECK(bench.plane->negotiate(1, agreed, bench.now, &keys));
    SecretEnd end(*far, suites[0], Key(2), Key(1));
    CHECK(bench.plane->send_keys(1, 1, "5", 100, 60));
    size_t events = 0, frames = 0;
    for (int i = 0; i < 60; i++) {
      bench.tick();
      for (const auto& payload : end.heard()) {
        CHECK(payload.size() == 4 || payload.size() == ptime * 8);
        (payload.size() == 4 ? events : frames)++;
      }
    }
    CHECK(events >= 7 && frames > 10);
  }
}

TEST("a new key of the far end takes over without a gap, and the old one is heard until then") {
  if (!able()) return;
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  const SrtpKeys before = keys_of(suites[0], Key(1), Key(2));
  const SrtpKeys after = keys_of(suites[3], Key(3), Key(4));
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &before));
  SecretEnd old(*far, suites[0], Key(2), Key(1));
  SecretEnd renewed(*far, suites[3], Key(4), Key(3));
  for (int i = 0; i < 5; i++) (void)old.say(1), bench.tick();
  CHECK(old.heard().size() == 5);
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &after));
  for (int i = 0; i < 5; i++) (void)old.say(2), bench.tick();  // on their way when the key changed
  for (int i = 0; i < 5; i++) (void)renewed.say(3), bench.tick();
  CHECK(counters_of(bench, 1).received == 15 && counters_of(bench, 1).srtp_forged == 0);
  for (const auto& payload : renewed.heard()) CHECK(payload.size() == frame_units);
  for (int64_t us = 0; us <= LegCipher::overlap_us; us += Plane::tick_us) (void)renewed.say(4), bench.tick();
  const uint32_t received = counters_of(bench, 1).received;
  (void)old.say(5);
  bench.tick();
  CHECK(counters_of(bench, 1).received == received && counters_of(bench, 1).srtp_forged == 1);
}

TEST("a far end that comes back to the key before goes on where it was, and what it said then is a replay") {
  if (!able()) return;
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  const SrtpKeys first = keys_of(suites[0], Key(1), Key(2));
  const SrtpKeys music = keys_of(suites[2], Key(3), Key(4));
  const SrtpKeys again = keys_of(suites[0], Key(5), Key(2));
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &first));
  SecretEnd person(*far, suites[0], Key(2), Key(1));
  SecretEnd holds(*far, suites[2], Key(4), Key(3));
  far->sequence = 0xfff0;
  std::vector<uint8_t> said;
  for (int i = 0; i < 32; i++) said = person.say(1), bench.tick();
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &music));
  for (int64_t us = 0; us <= 2 * LegCipher::overlap_us; us += Plane::tick_us) (void)holds.say(2), bench.tick();
  const uint32_t received = counters_of(bench, 1).received;
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &again));
  person.again(said);
  bench.tick();
  CHECK(counters_of(bench, 1).received == received && counters_of(bench, 1).srtp_replayed == 1);
  for (int i = 0; i < 5; i++) (void)person.say(3), bench.tick();
  CHECK(counters_of(bench, 1).received == received + 5 && counters_of(bench, 1).srtp_forged == 0);
}

TEST("the same keys in a later offer change nothing: numbers go on and replays are known") {
  if (!able()) return;
  Bench bench;
  FarEnd* far = bench.open();
  CHECK(far != nullptr);
  const SrtpKeys keys = keys_of(suites[0], Key(1), Key(2));
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &keys));
  SecretEnd end(*far, suites[0], Key(2), Key(1));
  const auto first = end.say(1);
  bench.tick();
  CHECK(bench.plane->negotiate(1, terms_of(*far), bench.now, &keys));
  end.again(first);
  bench.tick();
  CHECK(counters_of(bench, 1).srtp_replayed == 1);
}

TEST("a bridge between an encrypted leg and one in clear, or two encrypted ones, passes packets on undecoded") {
  if (!able()) return;
  for (const bool both : {false, true}) {
    for (const bool rings : {true, false}) {
      Bench bench(rings);
      CHECK(bench.plane->open_room(100) && bench.open() != nullptr && bench.open() != nullptr);
      FarEnd& a = *bench.ends[0];
      FarEnd& b = *bench.ends[1];
      const SrtpKeys keys = keys_of(suites[0], Key(1), Key(2));
      const SrtpKeys other = keys_of(suites[2], Key(3), Key(4));
      CHECK(bench.plane->negotiate(1, terms_of(a), bench.now, &keys));
      if (both) CHECK(bench.plane->negotiate(2, terms_of(b), bench.now, &other));
      for (const uint32_t leg : {1u, 2u}) CHECK(bench.plane->join(leg, 100, false, 100, 100));
      SecretEnd secret(a, suites[0], Key(2), Key(1));
      SecretEnd second(b, suites[2], Key(4), Key(3));
      int same = 0;
      for (int i = 0; i < 120; i++) {
        const auto fill = static_cast<uint8_t>(0x80 | (i % 64));
        (void)secret.say(fill);
        if (both) (void)second.say(fill);
        else b.say(std::vector<uint8_t>(frame_units, fill));
        bench.tick();
        const std::vector<uint8_t> frame(frame_units, fill);
        for (const auto& payload : secret.heard()) same += payload == frame;
        for (const auto& payload : both ? second.heard() : b.heard()) same += payload == frame;
      }
      CHECK(bench.plane->leg(1)->relays() && bench.plane->leg(2)->relays());
      CHECK(same > 120);
      CHECK(counters_of(bench, 1).srtp_forged == 0 && counters_of(bench, 2).srtp_forged == 0);
    }
  }
}
