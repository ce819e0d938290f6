#include "kernel/codec/l16.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "plane/leg/playout.h"
#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using test::Bench;
using test::FarEnd;

namespace {

constexpr double pi = 3.14159265358979;
constexpr uint32_t room = 100;
constexpr Codec rates_of_l16[] = {Codec::l16_8k, Codec::l16_16k, Codec::l16_24k};

std::vector<uint8_t> coded(const int16_t* pcm, size_t count) {
  std::vector<uint8_t> out(count * l16_sample_bytes);
  l16_encode(pcm, out.data(), count);
  return out;
}

std::vector<int16_t> decoded(const std::vector<uint8_t>& payload) {
  std::vector<int16_t> pcm(payload.size() / l16_sample_bytes);
  l16_decode(payload.data(), pcm.data(), pcm.size());
  return pcm;
}

std::vector<int16_t> tone(Codec codec, double hz, size_t frames) {
  std::vector<int16_t> pcm(frames * codec_samples(codec, frame_units));
  for (size_t i = 0; i < pcm.size(); i++) {
    const double turn = 2 * pi * hz * static_cast<double>(i) / codec_rate_hz(codec);
    pcm[i] = static_cast<int16_t>(std::lrint(8000 * std::sin(turn)));
  }
  return pcm;
}

/** The share of the energy that is at `hz`. */
double purity(const std::vector<int16_t>& pcm, double hz, double rate) {
  double real = 0, imaginary = 0, energy = 0;
  for (size_t i = 0; i < pcm.size(); i++) {
    const double turn = 2 * pi * hz * static_cast<double>(i) / rate;
    real += pcm[i] * std::cos(turn);
    imaginary += pcm[i] * std::sin(turn);
    energy += static_cast<double>(pcm[i]) * pcm[i];
  }
  return energy == 0 ? 0 : 2 * (real * real + imaginary * imaginary) / (static_cast<double>(pcm.size()) * energy);
}

/** Plays the frames of `said`, each `keep`t or not, to a listener whose ticks come 5 ms after the packets. */
template <typename Keep>
std::vector<int16_t> played(Codec codec, const std::vector<int16_t>& said, Keep keep, size_t* concealed = nullptr) {
  Playout playout(codec);
  const size_t count = codec_samples(codec, frame_units);
  std::vector<int16_t> heard;
  uint32_t timestamp = 0xfffffe00;  // which soon begins anew
  int64_t now = 1'000'000;
  for (size_t i = 0; i * count < said.size(); i++) {
    const std::vector<uint8_t> packet = coded(&said[i * count], count);
    if (keep(i)) playout.insert(timestamp, packet.data(), packet.size(), now);
    timestamp += static_cast<uint32_t>(count);
    int16_t out[frame_max];
    bool voiced;
    (void)playout.frame(now + 5'000, out, voiced);
    heard.insert(heard.end(), out, out + count);
    now += 20'000;
  }
  if (concealed != nullptr) *concealed = playout.concealed_frames();
  return heard;
}

}  // namespace

TEST("L16 has the most significant octet first") {
  const int16_t pcm[] = {0x0102, -2, -32768, 32767};
  const std::vector<uint8_t> octets = coded(pcm, 4);
  CHECK((octets == std::vector<uint8_t>{0x01, 0x02, 0xff, 0xfe, 0x80, 0x00, 0x7f, 0xff}));
  CHECK((decoded(octets) == std::vector<int16_t>(pcm, pcm + 4)));
}

TEST("L16 is heard to the bit at each of its rates, over the end of the timestamps") {
  std::mt19937 random(3);
  for (const Codec codec : rates_of_l16) {
    std::vector<int16_t> said(100 * codec_samples(codec, frame_units));
    for (int16_t& sample : said) sample = static_cast<int16_t>(random());
    size_t concealed = 0;
    const std::vector<int16_t> heard = played(codec, said, [](size_t) { return true; }, &concealed);
    CHECK(concealed == 0);
    const auto first = std::search(heard.begin(), heard.end(), said.begin(), said.begin() + 20);
    CHECK(first != heard.end() && first - heard.begin() <= static_cast<long>(2 * codec_samples(codec, frame_units)));
    CHECK(std::equal(first, heard.end(), said.begin()));
  }
}

TEST("a lost packet of L16 is made up, and the tone goes on through it; a longer loss becomes silence") {
  for (const Codec codec : rates_of_l16) {
    const std::vector<int16_t> said = tone(codec, 500, 150);
    size_t concealed = 0;
    std::vector<int16_t> heard = played(codec, said, [](size_t i) { return i % 10 != 5; }, &concealed);
    CHECK(concealed >= 14);
    // Each tenth of a second is judged by itself: what the buffer stretches moves the phase, and is no loss of sound.
    std::vector<double> parts;
    const size_t tenth = codec_rate_hz(codec) / 10;
    for (size_t at = 10 * tenth; at + tenth <= heard.size(); at += tenth)
      parts.push_back(purity({heard.begin() + static_cast<long>(at), heard.begin() + static_cast<long>(at + tenth)},
                             500, codec_rate_hz(codec)));
    CHECK(*std::min_element(parts.begin(), parts.end()) > 0.8);
    heard = played(codec, said, [](size_t i) { return i < 100; });
    CHECK(std::all_of(heard.end() - static_cast<long>(tenth), heard.end(), [](int16_t s) { return s == 0; }));
  }
}

TEST("packets of L16 that are doubled, too long or no whole samples are left alone") {
  Playout playout(Codec::l16_24k);
  const std::vector<int16_t> said = tone(Codec::l16_24k, 700, 50);
  std::vector<int16_t> heard;
  int64_t now = 1'000'000;
  uint32_t timestamp = 0;
  const std::vector<uint8_t> long_one(1400, 0x55);
  for (size_t i = 0; i < 50; i++) {
    const std::vector<uint8_t> packet = coded(&said[i * 480], 480);
    playout.insert(timestamp, packet.data(), packet.size(), now);
    playout.insert(timestamp, packet.data(), packet.size(), now);
    for (const size_t count : {size_t{0}, size_t{1}, size_t{957}, size_t{1276}, size_t{1400}})
      playout.insert(timestamp + 480, long_one.data(), count, now);
    timestamp += 480;
    int16_t out[frame_max];
    bool voiced;
    CHECK(playout.frame(now + 5'000, out, voiced) == 480);
    heard.insert(heard.end(), out, out + 480);
    now += 20'000;
  }
  const auto first = std::search(heard.begin(), heard.end(), said.begin(), said.begin() + 40);
  CHECK(first != heard.end() && std::equal(first, heard.end(), said.begin()));
}

TEST("two pipes of L16 hear each other to the bit through a mix, in packets of 20 ms with timestamps of their rate") {
  for (const Codec codec : rates_of_l16) {
    Bench bench;
    const size_t count = codec_samples(codec, frame_units);
    CHECK(bench.plane->open_room(room) && bench.open(codec) != nullptr && bench.open(codec) != nullptr);
    for (const uint32_t leg : {1u, 2u}) {
      CHECK(bench.plane->pipe(leg, 10 + leg, 77, false));
      CHECK(bench.plane->join(leg, room, false, 100, 100));
    }
    const std::vector<int16_t> said = tone(codec, 3300, 60);
    std::vector<int16_t> heard;
    std::vector<uint32_t> times;
    size_t marked = 0;
    for (size_t i = 0; i < 60; i++) {
      bench.ends[0]->say(coded(&said[i * count], count));
      bench.ends[1]->say(std::vector<uint8_t>(count * l16_sample_bytes));
      bench.tick();
      for (const auto& bytes : bench.ends[1]->packets()) {
        RtpPacket packet;
        CHECK(rtp_parse(bytes.data(), bytes.size(), packet) && packet.ssrc == 12);
        CHECK(packet.payload_bytes == count * l16_sample_bytes);
        times.push_back(packet.timestamp);
        marked += packet.marker;
        const std::vector<int16_t> frame = decoded({packet.payload, packet.payload + packet.payload_bytes});
        heard.insert(heard.end(), frame.begin(), frame.end());
      }
    }
    CHECK(times.size() == 60 && marked == 1);
    for (size_t i = 1; i < times.size(); i++) CHECK(times[i] - times[i - 1] == count);
    CHECK(!bench.plane->leg(1)->relays());
    // What was heard in the last half a second was said, sample by sample.
    const auto from = heard.end() - static_cast<long>(25 * count);
    CHECK(std::search(said.begin(), said.end(), from, heard.end()) != said.end());
  }
}

TEST("a pipe of L16 at 24 kHz carries what G.722 cuts off, beside one at 8 kHz that has no noise of mu-law") {
  Bench bench;
  CHECK(bench.plane->open_room(room));
  for (const Codec codec : {Codec::l16_24k, Codec::l16_24k, Codec::l16_8k}) CHECK(bench.open(codec) != nullptr);
  for (const uint32_t leg : {1u, 2u, 3u}) {
    CHECK(bench.plane->pipe(leg, 10 + leg, 77, false));
    CHECK(bench.plane->join(leg, room, false, 100, 100));
  }
  const std::vector<int16_t> high = tone(Codec::l16_24k, 10'030, 100);
  const std::vector<int16_t> low = tone(Codec::l16_8k, 1'030, 100);
  std::vector<std::vector<int16_t>> heard(3);
  for (size_t i = 0; i < 100; i++) {
    bench.ends[0]->say(coded(&high[i * 480], 480));
    bench.ends[1]->say(std::vector<uint8_t>(960));
    bench.ends[2]->say(coded(&low[i * 160], 160));
    bench.tick();
    for (size_t leg = 0; leg < 3; leg++) {
      for (const auto& payload : bench.ends[leg]->heard()) {
        const std::vector<int16_t> frame = decoded(payload);
        if (i >= 50) heard[leg].insert(heard[leg].end(), frame.begin(), frame.end());
      }
    }
  }
  CHECK(purity(heard[0], 1'030, 24'000) > 0.99999);  // 50 dB; mu-law has 38
  CHECK(std::abs(purity(heard[1], 10'030, 24'000) - 0.5) < 0.01);
  CHECK(std::abs(purity(heard[1], 1'030, 24'000) - 0.5) < 0.01);
  for (const int16_t sample : heard[2]) CHECK(std::abs(sample) < 40);  // 10 kHz is nothing to who hears 4 kHz
}

TEST("a pipe of L16 on which nothing comes for 300 ms tells so once, and sends a frame of silence each tick") {
  Bench bench;
  CHECK(bench.plane->open_room(room) && bench.open(Codec::l16_16k) != nullptr);
  CHECK(bench.plane->pipe(1, 10, 77, true) && bench.plane->join(1, room, false, 100, 100));
  FarEnd& node = *bench.ends[0];
  const auto silences = [&] {
    size_t count = 0;
    for (const Notice& notice : bench.notices()) count += notice.kind == NoticeKind::pipe_silent;
    return count;
  };
  for (int i = 0; i < 10; i++) {
    node.say(std::vector<uint8_t>(640));
    bench.tick();
  }
  for (int i = 0; i < 14; i++) bench.tick();
  CHECK(silences() == 0);
  (void)node.packets();
  for (int i = 0; i < 40; i++) bench.tick();
  CHECK(silences() == 1);
  const auto sent = node.heard();
  CHECK(sent.size() == 40);
  for (const auto& payload : sent) CHECK(payload == std::vector<uint8_t>(640));
}

TEST("a leg of L16 sends packets of 20 ms whatever length was asked for, and goes on after another codec") {
  Bench bench;
  FarEnd* far = bench.open(Codec::l16_24k);
  for (const Codec codec : {Codec::l16_24k, Codec::pcmu, Codec::l16_24k, Codec::g722, Codec::l16_16k}) {
    Negotiated agreed;
    agreed.rtp = far->here();
    agreed.rtcp = test::nowhere();
    agreed.codec = codec;
    agreed.payload_type = 96;
    agreed.ptime_ms = 60;
    CHECK(bench.plane->negotiate(1, agreed, bench.now));
    (void)far->packets();
    for (int tick = 0; tick < 12; tick++) bench.tick();
    const auto sent = far->heard();
    CHECK(sent.size() == (has_octets(codec) ? 4 : 12));
    CHECK(sent.back().size() ==
          (has_octets(codec) ? 3 * frame_units : l16_sample_bytes * codec_samples(codec, frame_units)));
  }
}
