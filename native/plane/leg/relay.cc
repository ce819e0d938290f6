#include "plane/leg/relay.h"

#include <algorithm>
#include <cstring>

namespace sidetone {

void Relay::arm(int64_t now_us) {
  *this = Relay();
  state_ = State::armed;
  fades_out_ = true;
  last_us_ = now_us;
}

void Relay::fade_out(Codec codec, int16_t* pcm) {
  fades_out_ = false;
  const size_t count = fade_samples(codec);
  int16_t* end = pcm + codec_samples(codec, frame_units) - count;
  for (size_t i = 0; i < count; i++)
    end[i] = static_cast<int16_t>(end[i] * static_cast<int32_t>(count - 1 - i) / static_cast<int32_t>(count));
}

void Relay::fade_in(Codec codec, const uint8_t* payload, uint8_t* out) {
  if (codec == Codec::g722) {
    std::memcpy(out, payload, frame_units);
    return;
  }
  int16_t pcm[frame_units];
  Decoder decoder;
  decoder.decode(codec, payload, pcm, frame_units);
  const size_t count = fade_samples(codec);
  for (size_t i = 0; i < count; i++)
    pcm[i] = static_cast<int16_t>(pcm[i] * static_cast<int32_t>(i) / static_cast<int32_t>(count));
  Encoder encoder;
  encoder.encode(codec, pcm, out, frame_units);
}

void Relay::end() {
  if (on()) state_ = State::ending;
  fades_out_ = false;
}

/** Whether a packet that comes now is not one too many. */
bool Relay::in_time(int64_t now_us) {
  paid_us_ = std::max(paid_us_, now_us);
  if (paid_us_ - now_us > (at_once_most - 1) * each_us) return false;
  paid_us_ += each_us;
  return true;
}

bool Relay::number(const RtpPacket& packet, uint16_t sequence, uint32_t timestamp, int64_t now_us, Numbers& numbers) {
  if (!on() || fades_out_) return false;
  numbers.first = state_ == State::armed;
  if (numbers.first) {
    state_ = State::on;
    ssrc_ = packet.ssrc;
    offset_ = static_cast<uint16_t>(sequence - packet.sequence);
    timestamp_offset_ = timestamp - packet.timestamp;
    first_sequence_ = sequence;
    last_sequence_ = static_cast<uint16_t>(sequence - 1);
    last_timestamp_ = timestamp - static_cast<uint32_t>(frame_units);
  }
  numbers.sequence = static_cast<uint16_t>(packet.sequence + offset_);
  numbers.timestamp = packet.timestamp + timestamp_offset_;
  const int32_t later = static_cast<int32_t>(numbers.timestamp - last_timestamp_);
  const int32_t ahead = static_cast<int16_t>(numbers.sequence - last_sequence_);
  const bool numbers_jump = (ahead <= 0 && later > 0) || ahead > lost_most;
  if (packet.ssrc != ssrc_ || later > jump_most || later < -jump_most || numbers_jump) {
    end();  // another source, or one that begins anew
    return false;
  }
  // One overtaken by the first has the number of a frame of our own.
  if (ahead <= -static_cast<int32_t>(back_most) ||
      (taken_ < back_most && static_cast<int16_t>(numbers.sequence - first_sequence_) < 0))
    return false;
  if (!in_time(now_us)) return false;
  if (taken_ < back_most) taken_++;
  if (ahead > 0) {
    last_sequence_ = numbers.sequence;
    last_timestamp_ = numbers.timestamp;
    last_octet_ = packet.payload[packet.payload_bytes - 1];
  }
  last_us_ = now_us;
  spoken_ = true;
  return true;
}

uint32_t Relay::resume(Codec codec, int16_t* pcm, int64_t now_us) {
  int16_t last = 0;
  Decoder decoder;
  if (spoken_ && codec != Codec::g722) decoder.decode(codec, &last_octet_, &last, 1);
  const int32_t whole = static_cast<int32_t>(fade_samples(codec));
  for (int32_t i = 0; i < whole; i++) pcm[i] = static_cast<int16_t>((pcm[i] * i + last * (whole - i)) / whole);
  const int64_t frames = spoken_ ? (now_us - last_us_) / 20'000 : 0;
  state_ = State::off;
  return frames > 0 ? static_cast<uint32_t>(frames) : 0;
}

}  // namespace sidetone
