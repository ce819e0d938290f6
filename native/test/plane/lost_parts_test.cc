// Packets that are shorter or longer than the 20 ms of a tick, and what is heard where one of them is lost.
#ifdef SIDETONE_OPUS
#include <opus.h>
#endif

#include <algorithm>
#include <cmath>
#include <vector>

#include "plane/leg/playout.h"
#include "test/check.h"

using namespace sidetone;

namespace {

constexpr int64_t tick_us = 20'000;
constexpr int64_t phase_us = 22'000;  // of the ticks: the packet after a lost one is at hand when that one is due

/** A packet that comes once its last sample was said. */
struct Packet {
  uint32_t timestamp;
  int64_t sent_us;
  std::vector<uint8_t> bytes;
};

/** What is heard of packets. */
std::vector<int16_t> heard_of(Codec codec, const std::vector<Packet>& packets, size_t* concealed = nullptr) {
  Playout playout(codec);
  std::vector<int16_t> heard;
  size_t next = 0;
  for (int64_t now = packets.front().sent_us + phase_us; now < packets.back().sent_us; now += tick_us) {
    for (; next < packets.size() && packets[next].sent_us <= now; next++)
      playout.insert(packets[next].timestamp, packets[next].bytes.data(), packets[next].bytes.size(),
                     packets[next].sent_us);
    int16_t out[opus_frame_samples];
    bool said;
    const size_t count = playout.frame(now, out, said);
    heard.insert(heard.end(), out, out + count);
  }
  if (concealed != nullptr) *concealed = playout.concealed_frames();
  return heard;
}

#ifdef SIDETONE_OPUS
/** A voice whose pitch and loudness change all the time, in packets of these lengths in turn, at 48 kHz. */
std::vector<Packet> voice(const std::vector<size_t>& lengths, size_t samples) {
  constexpr double pi = 3.14159265358979;
  int error = 0;
  OpusEncoder* encoder = ::opus_encoder_create(opus_rate_hz, 1, OPUS_APPLICATION_VOIP, &error);
  (void)::opus_encoder_ctl(encoder, OPUS_SET_BITRATE(20'000));
  (void)::opus_encoder_ctl(encoder, OPUS_SET_INBAND_FEC(1));
  (void)::opus_encoder_ctl(encoder, OPUS_SET_PACKET_LOSS_PERC(20));
  std::vector<Packet> packets;
  double phase = 0;
  for (size_t at = 0; at < samples; at += lengths[(packets.size() - 1) % lengths.size()]) {
    const size_t length = lengths[packets.size() % lengths.size()];
    std::vector<int16_t> pcm(length);
    for (size_t i = 0; i < length; i++) {
      const double seconds = static_cast<double>(at + i) / opus_rate_hz;
      phase += 2 * pi * (140 + 40 * std::sin(2 * pi * 2.3 * seconds)) / opus_rate_hz;
      double sum = 0;
      for (int k = 1; k <= 12; k++) sum += std::sin(k * phase) / k;
      pcm[i] = static_cast<int16_t>(std::lrint(sum * (4000 + 3000 * std::sin(2 * pi * 3.1 * seconds))));
    }
    std::vector<uint8_t> bytes(1275);
    bytes.resize(static_cast<size_t>(::opus_encode(encoder, pcm.data(), static_cast<int>(length), bytes.data(), 1275)));
    const auto end_us = static_cast<int64_t>((at + length) * 125 / 6);
    packets.push_back({static_cast<uint32_t>(at), 1'000'000'000 + end_us, std::move(bytes)});
  }
  ::opus_encoder_destroy(encoder);
  return packets;
}

/** How much of `whole` is something else in `part`, from one sample to another. */
double difference(const std::vector<int16_t>& whole, const std::vector<int16_t>& part, size_t from, size_t to) {
  double energy = 1, error = 0;
  for (size_t i = from; i < to; i++) {
    energy += static_cast<double>(whole[i]) * whole[i];
    error += std::pow(whole[i] - part[i], 2);
  }
  return error / energy;
}
#endif

}  // namespace

TEST("of packets shorter than a tick, or across ticks, none is lost with the one that is") {
  for (const Codec codec : {Codec::pcmu, Codec::l16_8k}) {
    for (const size_t units : {20u, 40u, 80u, 240u}) {
      for (size_t lost = 3200 / units; lost < 3200 / units + 320 / units + 1; lost++) {
        std::vector<Packet> packets;
        std::vector<int16_t> said;
        for (size_t at = 0; at < 6400; at += units) {
          Packet packet{static_cast<uint32_t>(at), static_cast<int64_t>(at + units) * 125, {}};
          for (size_t i = 0; i < units; i++) {
            const int16_t level = static_cast<int16_t>(((at + i) % 97) * 40 - 2000);
            uint8_t octets[2];
            if (codec == Codec::pcmu) mulaw_encode(&level, octets, 1);
            else l16_encode(&level, octets, 1);
            packet.bytes.insert(packet.bytes.end(), octets, octets + (codec == Codec::pcmu ? 1 : 2));
          }
          packets.push_back(packet);
        }
        const std::vector<int16_t> whole = heard_of(codec, packets);
        packets.erase(packets.begin() + static_cast<std::ptrdiff_t>(lost));
        const std::vector<int16_t> heard = heard_of(codec, packets);
        CHECK(heard.size() == whole.size());
        // All but the lost packet and the 3 ms over which the sound is led back.
        size_t other = 0;
        for (size_t i = 0; i < heard.size(); i++) other += heard[i] != whole[i] ? 1 : 0;
        CHECK(other > 0 && other <= units + Concealment::lead_back_ms * 8);
      }
    }
  }
}

#ifdef SIDETONE_OPUS
TEST("a lost packet of Opus is made from the copy in the one after it, whatever its length, and two in a row as well") {
  for (const size_t length : {480u, 960u, 1920u, 2880u, 5760u}) {
    for (const size_t lost : {1u, 2u}) {
      std::vector<Packet> packets = voice({length}, 96'000);
      const std::vector<int16_t> whole = heard_of(Codec::opus, packets);
      const size_t at = packets.size() * 2 / 3;
      const size_t begin = packets[at].timestamp;
      const size_t end = begin + lost * length;
      packets.erase(packets.begin() + static_cast<std::ptrdiff_t>(at),
                    packets.begin() + static_cast<std::ptrdiff_t>(at + lost));
      const std::vector<int16_t> heard = heard_of(Codec::opus, packets);
      CHECK(heard.size() == whole.size() && end < heard.size());
      CHECK(std::equal(heard.begin(), heard.begin() + static_cast<std::ptrdiff_t>(begin), whole.begin()));
      CHECK(difference(whole, heard, end - 240, end) < 0.7);
    }
  }
}

TEST("a far end that changes the length of its packets of Opus, loses some and pauses is heard all the while") {
  std::vector<size_t> lengths(50, 960);
  lengths.insert(lengths.end(), 20, 2880);
  lengths.insert(lengths.end(), 100, 480);
  lengths.insert(lengths.end(), 10, 5760);
  lengths.insert(lengths.end(), 400, 120);
  lengths.insert(lengths.end(), 60, 1920);
  const std::vector<Packet> all = voice(lengths, 400'000);
  std::vector<Packet> packets;
  for (size_t i = 0; i < all.size(); i++) {
    if (i % 13 != 7 && (i < 220 || i > 300)) packets.push_back(all[i]);
  }
  size_t concealed = 0;
  const std::vector<int16_t> heard = heard_of(Codec::opus, packets, &concealed);
  CHECK(concealed > 0 && concealed * 5 < heard.size() / opus_frame_samples);
  CHECK(std::count(heard.end() - opus_rate_hz, heard.end(), 0) < opus_rate_hz / 10);
}
#endif
