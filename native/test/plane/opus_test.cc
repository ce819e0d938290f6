#include "plane/audio/opus.h"

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
constexpr uint32_t frame_clock = opus_frame_samples;

/** A stream of packets with a tone. */
struct Singer {
  std::unique_ptr<OpusVoiceEncoder> encoder = OpusVoiceEncoder::create();
  double hz;
  size_t at = 0;

  explicit Singer(double hz) : hz(hz) {}
  std::vector<uint8_t> packet() {
    int16_t pcm[opus_frame_samples];
    for (int16_t& sample : pcm)
      sample = static_cast<int16_t>(std::lrint(8000 * std::sin(2 * pi * hz * static_cast<double>(at++) / 48000)));
    std::vector<uint8_t> out(1000);
    out.resize(encoder->encode(pcm, out.data(), out.size()));
    return out;
  }
};

/** The share of the energy that is at `hz`. */
double purity(const int16_t* pcm, size_t count, double hz, double rate) {
  double real = 0, imaginary = 0, energy = 0;
  for (size_t i = 0; i < count; i++) {
    const double angle = 2 * pi * hz * static_cast<double>(i) / rate;
    real += pcm[i] * std::cos(angle);
    imaginary += pcm[i] * std::sin(angle);
    energy += static_cast<double>(pcm[i]) * pcm[i];
  }
  return energy == 0 ? 0 : 2 * (real * real + imaginary * imaginary) / (static_cast<double>(count) * energy);
}

/** Plays 150 packets of a tone, each `keep`t or not, and returns what is heard of the last two seconds. */
template <typename Keep>
std::vector<int16_t> played(Keep keep, size_t* concealed = nullptr) {
  Playout playout(Codec::opus);
  Singer singer(500);
  std::vector<int16_t> heard;
  int64_t now = 1'000'000;
  uint32_t timestamp = 0xffffff00;
  for (int i = 0; i < 150; i++) {
    const std::vector<uint8_t> packet = singer.packet();
    if (keep(i)) playout.insert(timestamp, packet.data(), packet.size(), now);
    timestamp += frame_clock;
    now += 20'000;
    int16_t out[opus_frame_samples];
    bool said;
    (void)playout.frame(now - 5'000, out, said);
    if (i >= 50) heard.insert(heard.end(), out, out + opus_frame_samples);
  }
  if (concealed != nullptr) *concealed = playout.concealed_frames();
  return heard;
}

/** The bits of Opus that leg 1 sends in a second of a playback, when its far end takes `most` of them. */
size_t bits_sent(Bench& bench, FarEnd& far, uint32_t most) {
  Negotiated agreed;
  agreed.rtp = far.here();
  agreed.rtcp = test::nowhere();
  agreed.codec = Codec::opus;
  agreed.payload_type = 111;
  agreed.max_bitrate = most;
  (void)bench.plane->negotiate(1, agreed, bench.now);
  size_t bytes = 0, at = 0;
  for (int tick = 0; tick < 150; tick++) {
    int16_t pcm[opus_frame_samples];
    for (int16_t& sample : pcm)
      sample = static_cast<int16_t>(std::lrint(8000 * std::sin(2 * pi * 500 * static_cast<double>(at++) / 48000)));
    (void)bench.plane->feed(1, 1, pcm, opus_frame_samples);
    bench.tick();
    for (const auto& payload : far.heard()) bytes += tick < 50 ? 0 : payload.size();
  }
  return bytes * 8 / 2;
}

/** Lays two frames of one kind into a packet of `count` bytes, with padding behind them (RFC 6716 §3.2.5). */
std::vector<uint8_t> packet_of_two(const std::vector<uint8_t>& first, const std::vector<uint8_t>& second,
                                   size_t count) {
  constexpr uint8_t vbr = 0x80, padded = 0x40;
  std::vector<uint8_t> out = {static_cast<uint8_t>((first[0] & 0xfc) | 3), vbr | padded | 2};
  size_t padding = count - (first.size() + second.size()) - 2;  // its own length counts too
  for (; padding > 255; padding -= 255) out.push_back(255);
  out.push_back(static_cast<uint8_t>(padding - 1));
  out.push_back(static_cast<uint8_t>(first.size() - 1));
  out.insert(out.end(), first.begin() + 1, first.end());
  out.insert(out.end(), second.begin() + 1, second.end());
  out.resize(count);
  return out;
}

}  // namespace

TEST("Opus goes through the jitter buffer as it was said, over the end of the timestamps") {
  if (!opus_supported()) return;
  size_t concealed = 0;
  const std::vector<int16_t> heard = played([](int) { return true; }, &concealed);
  CHECK(concealed == 0);
  CHECK(purity(heard.data(), heard.size(), 500, 48000) > 0.99);
}

TEST("a far end that takes fewer bits of Opus in a second is sent no more, until it takes more again") {
  if (!opus_supported()) return;
  Bench bench;
  FarEnd* far = bench.open(Codec::opus);
  CHECK(far != nullptr && bench.plane->play(1, 1, 48000, 100));
  for (int round = 0; round < 2; round++) {
    const size_t free = bits_sent(bench, *far, 0);
    CHECK(free > 28'000 && free < 36'000);
    CHECK(bits_sent(bench, *far, 100'000) < 36'000);
    const size_t limited = bits_sent(bench, *far, 12'000);
    CHECK(limited > 6'000 && limited < 12'600);
  }
}

TEST("a far end that takes no more than 10 ms in a packet is sent no more of Opus, and the same sound") {
  if (!opus_supported()) return;
  Bench bench;
  FarEnd* far = bench.open(Codec::opus);
  CHECK(far != nullptr && bench.plane->play(1, 1, 48000, 100));
  Negotiated agreed;
  agreed.rtp = far->here();
  agreed.rtcp = test::nowhere();
  agreed.codec = Codec::opus;
  agreed.payload_type = 111;
  agreed.ptime_ms = 10;
  CHECK(bench.plane->negotiate(1, agreed, bench.now));
  std::unique_ptr<OpusVoiceDecoder> decoder = OpusVoiceDecoder::create();
  std::vector<int16_t> heard;
  uint32_t next = 0;
  for (size_t tick = 0, at = 0; tick < 100; tick++) {
    int16_t pcm[opus_frame_samples];
    for (int16_t& sample : pcm)
      sample = static_cast<int16_t>(std::lrint(8000 * std::sin(2 * pi * 500 * static_cast<double>(at++) / 48000)));
    (void)bench.plane->feed(1, 1, pcm, opus_frame_samples);
    bench.tick();
    for (const auto& bytes : far->packets()) {
      RtpPacket rtp;
      CHECK(rtp_parse(bytes.data(), bytes.size(), rtp));
      CHECK(opus_samples(rtp.payload, rtp.payload_bytes) == opus_frame_samples / 2);
      CHECK(heard.empty() || rtp.timestamp == next);
      next = rtp.timestamp + opus_frame_samples / 2;
      int16_t said[opus_packet_samples_max];
      const size_t count = decoder->decode(rtp.payload, rtp.payload_bytes, said);
      heard.insert(heard.end(), said, said + count);
    }
  }
  CHECK(heard.size() > 80 * opus_frame_samples);
  CHECK(purity(heard.data() + heard.size() - 24000, 24000, 500, 48000) > 0.97);
}

TEST("a packet of several frames of Opus is heard, however much of a datagram it takes") {
  if (!opus_supported()) return;
  for (const size_t bytes : {size_t{400}, size_t{1275}, size_t{1276}, size_t{1450}}) {
    Playout playout(Codec::opus);
    Singer singer(500);
    std::vector<int16_t> heard;
    int64_t now = 1'000'000;
    for (uint32_t i = 0; i < 150; i++, now += 20'000) {
      if (i % 2 == 0) {
        const std::vector<uint8_t> first = singer.packet();
        const std::vector<uint8_t> second = singer.packet();
        CHECK((first[0] & 0xfc) == (second[0] & 0xfc) && first.size() <= 252);
        const std::vector<uint8_t> packet = packet_of_two(first, second, bytes);
        CHECK(opus_samples(packet.data(), bytes) == 2 * opus_frame_samples);
        playout.insert(i * frame_clock, packet.data(), bytes, now);
      }
      int16_t out[opus_frame_samples];
      bool said;
      (void)playout.frame(now + 15'000, out, said);
      if (i >= 50) heard.insert(heard.end(), out, out + opus_frame_samples);
    }
    CHECK(playout.concealed_frames() == 0);
    CHECK(purity(heard.data(), heard.size(), 500, 48000) > 0.99);
  }
}

TEST("a lost packet of Opus is made up, and the tone goes on through it") {
  if (!opus_supported()) return;
  size_t concealed = 0;
  const std::vector<int16_t> heard = played([](int i) { return i % 10 != 5; }, &concealed);
  CHECK(concealed >= 14);
  // Each tenth of a second is judged by itself: what the buffer stretches moves the phase, and is no loss of sound.
  std::vector<double> parts;
  for (size_t at = 0; at + 4800 <= heard.size(); at += 4800)
    parts.push_back(purity(heard.data() + at, 4800, 500, 48000));
  std::sort(parts.begin(), parts.end());
  CHECK(parts.front() > 0.2 && parts[parts.size() / 2] > 0.8);
}

TEST("packets of Opus that are doubled or none are left alone, and a pause becomes silence") {
  if (!opus_supported()) return;
  Playout playout(Codec::opus);
  Singer singer(500);
  int64_t now = 1'000'000;
  uint32_t timestamp = 0;
  int16_t out[opus_frame_samples];
  bool said = false;
  for (int i = 0; i < 50; i++) {
    const std::vector<uint8_t> packet = singer.packet();
    playout.insert(timestamp, packet.data(), packet.size(), now);
    playout.insert(timestamp, packet.data(), packet.size(), now);
    playout.insert(timestamp + 120, packet.data(), 0, now);
    timestamp += frame_clock;
    now += 20'000;
    (void)playout.frame(now - 5'000, out, said);
  }
  CHECK(said);
  for (int i = 0; i < 40; i++, now += 20'000) (void)playout.frame(now, out, said);
  CHECK(!said);
  for (const int16_t sample : out) CHECK(sample == 0);
}

TEST(
    "a leg with Opus and one with PCMU hear each other in a room, which mixes at 48 kHz; keys have the clock of Opus") {
  if (!opus_supported()) return;
  Bench bench;
  FarEnd* wide = bench.open(Codec::opus, true);
  FarEnd* narrow = bench.open(Codec::pcmu);
  CHECK(wide != nullptr && narrow != nullptr);
  CHECK(bench.plane->open_room(100));
  for (const uint32_t id : {1u, 2u}) CHECK(bench.plane->join(id, 100, false, 100, 100));
  Singer singer(700);
  std::unique_ptr<OpusVoiceDecoder> decoder = OpusVoiceDecoder::create();
  Decoder mulaw;
  Encoder to_mulaw;
  std::vector<int16_t> heard_wide, heard_narrow;
  uint32_t timestamp = 5000, last = 0;
  size_t at = 0, steps = 0;
  for (int tick = 0; tick < 100; tick++) {
    const std::vector<uint8_t> packet = singer.packet();
    wide->timestamp = timestamp;
    wide->say(packet);
    timestamp += frame_clock;
    int16_t tone[frame_units];
    for (int16_t& sample : tone)
      sample = static_cast<int16_t>(std::lrint(8000 * std::sin(2 * pi * 1100 * static_cast<double>(at++) / 8000)));
    std::vector<uint8_t> octets(frame_units);
    to_mulaw.encode(Codec::pcmu, tone, octets.data(), frame_units);
    narrow->say(octets);
    bench.tick();
    for (const auto& bytes : wide->packets()) {
      RtpPacket rtp;
      CHECK(rtp_parse(bytes.data(), bytes.size(), rtp));
      if (last != 0) steps += rtp.timestamp - last == frame_clock ? 1 : 0;
      last = rtp.timestamp;
      int16_t pcm[opus_packet_samples_max];
      const size_t count = decoder->decode(rtp.payload, rtp.payload_bytes, pcm);
      CHECK(count == opus_frame_samples);
      heard_wide.insert(heard_wide.end(), pcm, pcm + count);
    }
    for (const auto& payload : narrow->heard()) {
      int16_t pcm[frame_units];
      mulaw.decode(Codec::pcmu, payload.data(), pcm, frame_units);
      heard_narrow.insert(heard_narrow.end(), pcm, pcm + frame_units);
    }
  }
  CHECK(steps > 60);
  CHECK(purity(heard_wide.data() + heard_wide.size() - 24000, 24000, 1100, 48000) > 0.97);
  CHECK(purity(heard_narrow.data() + heard_narrow.size() - 4000, 4000, 700, 8000) > 0.97);

  // A key of 100 ms is 4800 units of 48 kHz, both ways.
  for (const uint16_t units : {960, 2880, 4800}) {
    const bool end = units == 4800;
    wide->payload_type = 101;
    wide->timestamp = timestamp;
    wide->say(
        {5, static_cast<uint8_t>(end ? 0x8a : 0x0a), static_cast<uint8_t>(units >> 8), static_cast<uint8_t>(units)});
  }
  bench.tick();
  bool told = false;
  for (const Notice& notice : bench.notices())
    told = told || (notice.kind == NoticeKind::digit && notice.a == '5' && notice.b == 100);
  CHECK(told);
  CHECK(bench.plane->send_keys(1, 1, "7", 100, 100));
  uint32_t longest = 0;
  for (int tick = 0; tick < 10; tick++) {
    bench.tick();
    for (const auto& bytes : wide->packets())
      if ((bytes[1] & 0x7f) == 101)
        longest = std::max<uint32_t>(longest, static_cast<uint32_t>(bytes[14] << 8 | bytes[15]));
  }
  CHECK(longest == 4800);
}

TEST("the noise of an Opus far end that sends nothing while nobody speaks goes on, until it has gone") {
  if (!opus_supported()) return;
  Playout playout(Codec::opus);
  const auto encoder = OpusVoiceEncoder::create();
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 60);
  int silent = 0;
  for (int tick = 0; tick < 300; tick++) {
    int16_t pcm[opus_frame_samples];
    for (int16_t& sample : pcm) sample = static_cast<int16_t>(std::lrint(noise(random)));
    uint8_t packet[1000];
    const size_t count = encoder->encode(pcm, packet, sizeof packet);
    const uint32_t timestamp = static_cast<uint32_t>(tick) * frame_clock;
    if (tick < 250 && (tick < 50 || tick % 21 == 0)) playout.insert(timestamp, packet, count, tick * 20'000);
    bool said;
    (void)playout.frame(tick * 20'000 + 15'000, pcm, said);
    double energy = 0;
    for (const int16_t sample : pcm) energy += sample * sample;
    if (tick >= 10 && tick < 250 && energy < 20.0 * 20 * opus_frame_samples) silent++;
    CHECK(tick < 290 || energy == 0);
  }
  CHECK(silent == 0);
}

TEST("a voice of Opus that breaks off falls to silence, wherever in its packets that is") {
  if (!opus_supported()) return;
  for (int last = 100; last < 110; last++) {
    Playout playout(Codec::opus);
    Singer singer(330);
    int16_t end = 0, step = 0;
    for (int tick = 0; tick < last + 20; tick++) {
      const std::vector<uint8_t> packet = singer.packet();
      const uint32_t timestamp = static_cast<uint32_t>(tick) * frame_clock;
      if (tick < last) playout.insert(timestamp, packet.data(), packet.size(), tick * 20'000);
      int16_t pcm[opus_frame_samples];
      bool said;
      (void)playout.frame(tick * 20'000 + 15'000, pcm, said);
      const bool is_silent = std::all_of(pcm, pcm + opus_frame_samples, [](int16_t sample) { return sample == 0; });
      if (tick > 0 && is_silent) step = std::max<int16_t>(step, static_cast<int16_t>(std::abs(end)));
      end = pcm[opus_frame_samples - 1];
    }
    CHECK(step <= 4);
  }
}

TEST("a far end of Opus that goes on as another source is led over to it, wherever in its packets that is") {
  if (!opus_supported()) return;
  for (int last = 100; last < 110; last++) {
    Playout playout(Codec::opus);
    Singer before(330), after(330);
    std::vector<int16_t> heard;
    for (int tick = 0; tick < last + 50; tick++) {
      const std::vector<uint8_t> packet = (tick < last ? before : after).packet();
      const uint32_t timestamp = static_cast<uint32_t>(tick) * frame_clock + (tick < last ? 0 : 123'456'789);
      if (tick == last + 1) playout.restart(Codec::opus);  // with the second packet of the other source
      if (tick != last) playout.insert(timestamp, packet.data(), packet.size(), tick * 20'000);
      int16_t pcm[opus_frame_samples];
      bool said;
      (void)playout.frame(tick * 20'000 + 15'000, pcm, said);
      if (tick > 20) heard.insert(heard.end(), pcm, pcm + opus_frame_samples);
    }
    int steepest = 0;
    for (size_t at = 1; at < heard.size(); at++) steepest = std::max(steepest, std::abs(heard[at] - heard[at - 1]));
    CHECK(steepest < 500);  // the tone's own is 346
    CHECK(purity(heard.data() + heard.size() - 48'000 / 2, 48'000 / 2, 330, 48000) > 0.99);
  }
}

TEST("silence of Opus is hardly sent (DTX), and a leg that changes to G.711 and back goes on") {
  if (!opus_supported()) return;
  Bench bench;
  FarEnd* far = bench.open(Codec::opus);
  for (int tick = 0; tick < 100; tick++) bench.tick();
  const size_t quiet = far->packets().size();
  CHECK(quiet < 60);
  for (const Codec codec : {Codec::pcmu, Codec::opus, Codec::g722, Codec::opus}) {
    Negotiated agreed;
    agreed.rtp = far->here();
    agreed.rtcp = test::nowhere();
    agreed.codec = codec;
    agreed.payload_type = 96;
    CHECK(bench.plane->negotiate(1, agreed, bench.now));
    for (int tick = 0; tick < 10; tick++) bench.tick();
    const auto packets = far->packets();
    CHECK(!packets.empty() || codec == Codec::opus);
    if (codec != Codec::opus) CHECK(packets.back().size() == rtp_header_bytes + frame_units);
  }
}
