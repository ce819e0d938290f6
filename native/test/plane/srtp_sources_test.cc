#include "plane/srtp/srtp_sources.h"

#include <cstdint>
#include <vector>

#include "test/check.h"
#include "test/plane/srtp_packets.h"

using namespace sidetone;
using namespace test::srtp;

TEST("a far end that begins a source with each talk spurt is heard, and nothing that it said is heard twice") {
  if (!able()) return;
  using Verdict = SrtpSession::Verdict;
  constexpr uint32_t spurts = 1000;
  for (const SrtpSuite suite : suites) {
    auto out = sender(suite, Key(1));
    auto in = receiver(suite, Key(1));
    std::vector<std::vector<uint8_t>> said;
    for (uint32_t ssrc = 1; ssrc <= spurts; ssrc++) {
      for (const uint16_t sequence : {7, 8, 9}) said.push_back(sealed(*out, ssrc, sequence));
      for (size_t i = said.size() - 3; i < said.size(); i++) CHECK(opened(*in, said[i]) == Verdict::ok);
    }
    for (const auto& datagram : said) CHECK(opened(*in, datagram) == Verdict::replayed);
    // The first source goes on, and its earlier packets are replays all the same, also those within the window.
    const auto report = sealed_report(*out, 1);
    CHECK(opened_report(*in, report) == Verdict::replayed);
    CHECK(opened(*in, sealed(*out, 1, 10)) == Verdict::ok);
    for (const auto& datagram : said) CHECK(opened(*in, datagram) == Verdict::replayed);
    CHECK(opened_report(*in, report) == Verdict::replayed);
    CHECK(opened(*in, sealed(*out, 1, 11)) == Verdict::ok);
    auto stranger = sender(suite, Key(2));
    CHECK(opened(*in, sealed(*stranger, 1, 12)) == Verdict::forged);
    CHECK(opened(*in, sealed(*stranger, 2, 12)) == Verdict::forged);
    CHECK(opened(*in, sealed(*out, 2, 12)) == Verdict::ok);
  }
}

TEST("a source that others took the place of is heard again although its numbers have rolled over") {
  if (!able()) return;
  using Verdict = SrtpSession::Verdict;
  for (const SrtpSuite suite : suites) {
    auto out = sender(suite, Key(1));
    auto in = receiver(suite, Key(1));
    std::vector<uint8_t> last;
    for (uint32_t number = 0; number < 0x10000 + 100; number += 50)
      CHECK(opened(*in, last = sealed(*out, 1, static_cast<uint16_t>(number))) == Verdict::ok);
    for (uint32_t ssrc = 2; ssrc <= 100; ssrc++) CHECK(opened(*in, sealed(*out, ssrc, 1)) == Verdict::ok);
    CHECK(opened(*in, last) == Verdict::replayed);
    CHECK(opened(*in, sealed(*sender(suite, Key(2)), 1, 1000)) == Verdict::forged);
    const auto next = sealed(*out, 1, 1000);
    CHECK(opened(*in, next) == Verdict::ok);
    CHECK(opened(*in, next) == Verdict::replayed);
    CHECK(opened(*in, last) == Verdict::replayed);
  }
}

TEST("sources beyond those that are kept in mind are refused: a source that is forgotten could be replayed") {
  if (!able()) return;
  auto out = sender(suites[0], Key(1));
  auto in = receiver(suites[0], Key(1));
  for (uint32_t ssrc = 1; ssrc <= SrtpSources::known_max + 1; ssrc++) {
    const bool fits = ssrc <= SrtpSources::known_max;
    CHECK((opened(*in, sealed(*out, ssrc, 1)) == SrtpSession::Verdict::ok) == fits);
  }
  CHECK(opened(*in, sealed(*out, 1, 2)) == SrtpSession::Verdict::ok);
}

TEST("a far end that has used its key for long before it is heard here is heard within some packets") {
  if (!able()) return;
  for (const uint32_t rolled_over : {1u, 3u, 66u}) {  // 22 minutes, an hour, a day of 50 packets a second
    auto out = sender(suites[0], Key(1));
    auto in = receiver(suites[0], Key(1));
    for (uint32_t i = 0; i < 3 * rolled_over; i++) CHECK(!sealed(*out, 7, static_cast<uint16_t>(0x5555 * i)).empty());
    uint16_t sequence = 0x3000;
    uint32_t unheard = 0;
    CHECK(!sealed(*out, 7, 0x2000).empty());
    while (unheard < 1000 && opened(*in, sealed(*out, 7, ++sequence)) != SrtpSession::Verdict::ok) unheard++;
    CHECK(unheard == (rolled_over - 1) / 2);
    CHECK(opened(*in, sealed(*out, 7, ++sequence)) == SrtpSession::Verdict::ok);
  }
}

TEST("a far end whose numbers rolled over before it could be heard is heard, and nobody else") {
  if (!able()) return;
  using Verdict = SrtpSession::Verdict;
  for (const SrtpSuite suite : suites) {
    auto out = sender(suite, Key(1));
    auto in = receiver(suite, Key(1));
    for (const uint16_t sequence : {65'533, 65'534, 65'535, 0, 1}) (void)sealed(*out, 77, sequence);  // are lost
    auto stranger = sender(suite, Key(2));
    for (uint16_t sequence = 2; sequence < 10; sequence++)
      CHECK(opened(*in, sealed(*stranger, 77, sequence)) == Verdict::forged);
    int heard = 0;
    std::vector<std::vector<uint8_t>> said;
    for (uint16_t sequence = 2; sequence < 10; sequence++) {
      said.push_back(sealed(*out, 77, sequence));
      heard += opened(*in, said.back()) == Verdict::ok;
    }
    CHECK(heard >= 5);
    CHECK(opened(*in, said.back()) == Verdict::replayed);
  }
}
