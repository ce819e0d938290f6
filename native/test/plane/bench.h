// Several legs of one plane on virtual time, each with a real socket for its far end.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "plane/plane.h"
#include "test/plane/loopback.h"

namespace sidetone::test {

/** The far end of one leg: it speaks to the leg only, and hears what comes to its socket. */
class FarEnd {
 public:
  const Address& here() const { return socket_.here(); }
  int fd() const { return socket_.fd(); }

  /** Sends one frame of 20 ms. */
  void say(const std::vector<uint8_t>& payload) {
    std::vector<uint8_t> bytes(rtp_header_bytes + payload.size());
    rtp_write_header(bytes.data(), marker, payload_type, sequence++, timestamp, ssrc);
    std::copy(payload.begin(), payload.end(), bytes.begin() + rtp_header_bytes);
    timestamp += frame_clock;
    socket_.send(leg, bytes);
  }

  /** The RTP packets that came since the last call. */
  std::vector<std::vector<uint8_t>> packets() {
    std::vector<std::vector<uint8_t>> all = socket_.receive();
    all.erase(std::remove_if(all.begin(), all.end(),
                             [](const auto& bytes) { return rtp_is_rtcp(bytes.data(), bytes.size()); }),
              all.end());
    return all;
  }
  /** Their payloads. */
  std::vector<std::vector<uint8_t>> heard() {
    std::vector<std::vector<uint8_t>> all = packets();
    for (auto& packet : all) packet.erase(packet.begin(), packet.begin() + rtp_header_bytes);
    return all;
  }

  Address leg;
  uint8_t payload_type = 0;
  uint16_t sequence = 0;
  uint32_t timestamp = 0;
  uint32_t frame_clock = frame_units;  // what 20 ms are on the RTP clock
  bool marker = false;
  uint32_t ssrc = 77;

 private:
  UdpSocket socket_;
};

class Bench {
 public:
  explicit Bench(bool rings = true) {
    int error = 0;
    plane = Plane::create(60'000'000, error, rings);
  }

  /** A negotiated leg; its number is its place from 1 on. Nullptr where no port is free. */
  FarEnd* open(Codec codec = Codec::pcmu, bool events = false, const char* learn_from = "") {
    auto far = std::make_unique<FarEnd>();
    const uint32_t id = static_cast<uint32_t>(ends.size()) + 1;
    for (uint16_t port = first_port; port < last_port; port += 2) {
      far->leg = own(port);
      if (plane->open(id, far->leg, own(static_cast<uint16_t>(port + 1))) != 0) continue;
      Negotiated agreed;
      agreed.rtp = far->here();
      agreed.learn_from = AddressRange::parse_list(learn_from);
      agreed.rtcp = nowhere();
      agreed.codec = codec;
      agreed.payload_type = far->payload_type = codec == Codec::pcmu   ? 0
                                                : codec == Codec::pcma ? 8
                                                : codec == Codec::g722 ? 9
                                                                       : 111;
      agreed.event_payload_type = events ? 101 : -1;
      if (codec == Codec::opus) agreed.event_clock_hz = 48000;
      far->frame_clock = frame_units * codec_clock_scale(codec);
      plane->negotiate(id, agreed, now);
      ends.push_back(std::move(far));
      return ends.back().get();
    }
    return nullptr;
  }

  void tick() {
    plane->tick(now);
    now.us += Plane::tick_us;
    now.wall_us += Plane::tick_us;
  }

  std::vector<Notice> notices() const {
    std::vector<Notice> all(1000);
    all.resize(plane->take_notices(all.data(), all.size()));
    return all;
  }

  std::unique_ptr<Plane> plane;
  std::vector<std::unique_ptr<FarEnd>> ends;
  Now now{1'000'000'000, 1'700'000'000'000'000};
};

/** A far end says a frame in a codec. */
inline void say_coded(FarEnd& far, Codec codec, Encoder& encoder, const std::vector<int16_t>& frame) {
  std::vector<uint8_t> octets(frame_units);
  encoder.encode(codec, frame.data(), octets.data(), frame_units);
  far.say(octets);
}

/** Adds what a far end has heard since the last time to `pcm`, decoded. */
inline void hear_coded(FarEnd& far, Codec codec, Decoder& decoder, std::vector<int16_t>& pcm) {
  for (const auto& payload : far.heard()) {
    std::vector<int16_t> frame(codec_samples(codec, payload.size()));
    decoder.decode(codec, payload.data(), frame.data(), payload.size());
    pcm.insert(pcm.end(), frame.begin(), frame.end());
  }
}

}  // namespace sidetone::test
