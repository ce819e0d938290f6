// How a leg sends: its own frames and keys, the packets of another leg, and its reports.
#include <errno.h>

#include <cstring>

#include "plane/leg/leg.h"
#include "plane/room/room.h"

namespace sidetone {

/** Sends a packet of another leg as its own. */
void Leg::pass_on(const RtpPacket& packet, Codec codec, const Now& now) {
  Relay::Numbers numbers;
  if (!agreed_.send || codec != agreed_.codec || packet.payload_bytes == 0 || remote().unspecified()) return;
  if (packet.payload_bytes != frame_units) {
    relay_.end();  // it is mixed, and so is what follows
    return;
  }
  if (!relay_.number(packet, sequence_, timestamp_, now.us, numbers)) return;
  take_back();
  // The other end of a pipe begins anew with each marker, and there are callers who mark every packet.
  const bool marker = numbers.first || (packet.marker && !pipe_);
  rtp_write_header(packet_, marker, agreed_.payload_type, numbers.sequence, numbers.timestamp, ssrc_);
  if (numbers.first) Relay::fade_in(codec, packet.payload, packet_ + rtp_header_bytes);
  else std::memcpy(packet_ + rtp_header_bytes, packet.payload, frame_units);
  if (hand_over(rtp_header_bytes + frame_units)) {
    sent_++;
    sent_octets_ += static_cast<uint32_t>(frame_units);
  }
  sequence_ = relay_.next_sequence();
  timestamp_ = relay_.next_timestamp();
  marker_ = pipe_;  // of our own frame, if that is what follows
}

/** Makes the packet buffer usable again: what was handed to the sender is sent now. */
void Leg::take_back() {
  if (sender_ != nullptr && given_.count > 0 && given_at_ == sender_->flushes()) sender_->flush();
}

/** The address that a packet needs with it: none where the socket is connected to the far end. */
const Address* Leg::destination() { return !port_ && ports_.face(remote()) ? nullptr : &remote(); }

/** Sends a datagram to the far end at once. False when it was not taken. */
bool Leg::send(const uint8_t* bytes, size_t count) {
  if (send_datagram(rtp_fd(), destination(), bytes, count)) return true;
  failed(errno);
  return false;
}

/** Notes why a packet was not taken. Where it was neither a full buffer nor the far end, it may be the address that a
 * connected socket keeps although the machine has it no more. */
void Leg::failed(int error) {
  if (error != EAGAIN && error != ENOBUFS && error != ENOMEM && error != ECONNREFUSED) ports_.let_go();
}

/** Sends the first `count` bytes of the packet, which stays as it is until the sender has flushed. */
bool Leg::hand_over(size_t count) {
  given_ = {};
  if (keyless()) return false;
  const LegCipher::Sealed packet = cipher_ ? cipher_->seal(packet_, count) : LegCipher::Sealed{packet_, count};
  if (packet.bytes == nullptr) return false;
  if (sender_ == nullptr) return send(packet.bytes, packet.count);
  given_ = packet;
  given_octets_ = count - rtp_header_bytes;
  sender_->add(*this, rtp_fd(), destination(), packet.bytes, packet.count);
  given_at_ = sender_->flushes();
  return true;
}

/** Sends a packet at once, from anywhere in memory. */
bool Leg::send_now(const uint8_t* bytes, size_t count) {
  if (keyless()) return false;
  if (!cipher_) return send(bytes, count);
  alignas(8) uint8_t sealed[LegCipher::packet_max_bytes + srtp_overhead_bytes];
  if (count > LegCipher::packet_max_bytes) return false;
  std::memcpy(sealed, bytes, count);
  const size_t length = cipher_->seal_in_place(sealed, count);
  return length > 0 && send(sealed, length);
}

/** Makes `pcm` the first own frame after a relay. It is marked when frames before it were left out (RFC 3551 §4.1). */
void Leg::resume_own_frames(int16_t* pcm, const Now& now) {
  const uint32_t unsent = relay_.resume(agreed_.codec, pcm, now.us);
  timestamp_ += unsent * static_cast<uint32_t>(frame_units);
  if (unsent > 0) marker_ = true;
}

void Leg::send_frame(const Now& now, Notices& notices) {
  int16_t pcm[frame_max];
  if (relay_.on() && !relay_.fades_out()) {  // another leg's packets leave in place of its own
    if (taped()) (void)hears(pcm, codec_samples(agreed_.codec, frame_units), now, notices);
    speaking_ = true;
    return;
  }
  const bool fades = relay_.fades_out() || relay_.ending();
  if (fades) take_back();
  const KeySender::Step keyed = agreed_.send && !fades ? keys_.next() : KeySender::Step();
  if (keyed.finished != 0) notices.push_back({NoticeKind::keys_sent, id(), keyed.finished});
  if (keyed.key != 0 && agreed_.event_payload_type >= 0) {
    (void)hears(pcm, codec_samples(agreed_.codec, frame_units), now, notices);
    send_event(keyed);
    speaking_ = false;
    return;
  }
  const bool toned = keyed.tone != 0 && agreed_.event_payload_type < 0;
  uint8_t* octets = packet_ + rtp_header_bytes + pending_;
  bool voiced = true;
  if (is_g711(agreed_.codec) && hears_room_only() && !fades && !toned) {
    if (agreed_.send) seat()->room->encode(*seat(), agreed_.codec, octets);
  } else {
    voiced = hears(pcm, codec_samples(agreed_.codec, frame_units), now, notices);
    if ((fades || toned) && !voiced) std::fill_n(pcm, codec_samples(agreed_.codec, frame_units), int16_t{0});
    if (toned) KeySender::tones(keyed, pcm, codec_samples(agreed_.codec, frame_units));
    if (relay_.fades_out()) relay_.fade_out(agreed_.codec, pcm);
    else if (relay_.ending()) resume_own_frames(pcm, now);
    voiced = voiced || fades || toned;
    if (agreed_.send && has_octets(agreed_.codec))
      encoder_.encode(agreed_.codec, voiced ? pcm : nullptr, octets, frame_units);
  }
  if (agreed_.send && !has_octets(agreed_.codec)) {
    send_coded(voiced ? pcm : nullptr);
  } else if (agreed_.send) {
    if (voiced && !speaking_ && !pipe_) marker_ = true;  // the first packet of a talkspurt (RFC 3551 §4.1)
    pending_ += frame_units;
    const size_t units = agreed_.ptime_ms * (rtp_clock_hz / 1000);
    while (pending_ >= units) send_packet(units);
    // What packets of 30 or 50 ms have left goes alone, as what is passed on follows a whole frame.
    if (pending_ % frame_units != 0 && units % frame_units == 0) send_packet(pending_ % frame_units);
  } else {
    timestamp_ += clock(pending_ + frame_units);
    pending_ = 0;
  }
  speaking_ = voiced;
}

/** Encodes so many units of a codec that has packets, `pending_max` octets at most. nullptr: silence. Returns 0 where
 * nothing need be sent (DTX). */
size_t Leg::encode_packet(const int16_t* pcm, size_t units, uint8_t* out) {
  const size_t samples = codec_samples(agreed_.codec, units);
  if (agreed_.codec == Codec::opus) return opus_ ? opus_->encode(pcm, out, pending_max, samples) : 0;
  if (pcm == nullptr) std::memset(out, 0, samples * l16_sample_bytes);
  else l16_encode(pcm, out, samples);
  return samples * l16_sample_bytes;
}

/** Sends one frame of 20 ms as a packet, or as two where the far end takes no more than 10 ms; nothing where nothing
 * need be sent. nullptr: silence. */
void Leg::send_coded(const int16_t* pcm) {
  take_back();
  const size_t each = agreed_.ptime_ms < 20 ? frame_units / 2 : frame_units;
  for (size_t at = 0; at < frame_units; at += each) {
    const int16_t* part = pcm == nullptr ? nullptr : pcm + codec_samples(agreed_.codec, at);
    const size_t count = encode_packet(part, each, packet_ + rtp_header_bytes);
    if (count > 0) {
      rtp_write_header(packet_, marker_, agreed_.payload_type, sequence_, timestamp_, ssrc_);
      const bool stays = at + each == frame_units;  // else the next packet is built in the same place
      const size_t bytes = rtp_header_bytes + count;
      if (!remote().unspecified() && (stays ? hand_over(bytes) : send_now(packet_, bytes))) {
        sent_++;
        sent_octets_ += static_cast<uint32_t>(count);
      }
      sequence_++;
    }
    marker_ = count == 0;  // the next one begins a talkspurt
    timestamp_ += clock(each);
  }
}

/** Sends the packet of a tick in which a key is sounded (RFC 4733 §2.5.1); the last one of a key goes three times. */
void Leg::send_event(const KeySender::Step& step) {
  timestamp_ += clock(pending_);
  pending_ = 0;
  if (step.from_ms == 0) event_timestamp_ = timestamp_;
  const uint32_t units = step.until_ms * (agreed_.event_clock_hz / 1000);
  constexpr uint8_t end_bit = 0x80, volume = 10;  // -10 dBm0
  for (int copy = 0; copy < (step.last ? 3 : 1); copy++) {
    uint8_t out[rtp_header_bytes + 4];
    rtp_write_header(out, step.from_ms == 0 && copy == 0, static_cast<uint8_t>(agreed_.event_payload_type), sequence_,
                     event_timestamp_, ssrc_);
    out[rtp_header_bytes] = KeySender::event_of(step.key);
    out[rtp_header_bytes + 1] = static_cast<uint8_t>((step.last ? end_bit : 0) | volume);
    out[rtp_header_bytes + 2] = static_cast<uint8_t>(units >> 8);
    out[rtp_header_bytes + 3] = static_cast<uint8_t>(units);
    if (!remote().unspecified() && send_now(out, sizeof out)) {
      sent_++;
      sent_octets_ += 4;
    }
    sequence_++;
  }
  timestamp_ += clock(frame_units);
}

void Leg::send_packet(size_t units) {
  rtp_write_header(packet_, marker_, agreed_.payload_type, sequence_, timestamp_, ssrc_);
  if (!remote().unspecified()) {
    const size_t count = rtp_header_bytes + units;
    const bool stays = pending_ == units;  // else the next packet is built in the same place
    if (stays ? hand_over(count) : send_now(packet_, count)) {
      sent_++;
      sent_octets_ += static_cast<uint32_t>(units);
    }
  }
  sequence_++;
  timestamp_ += static_cast<uint32_t>(units);
  marker_ = false;
  pending_ -= units;
  if (pending_ > 0) std::memmove(packet_ + rtp_header_bytes, packet_ + rtp_header_bytes + units, pending_);
}

void Leg::refused(int error) {
  // The refusal concerns an earlier packet, as in `send_datagram`. The system has told it now, so this packet may go.
  if (error == ECONNREFUSED && send(given_.bytes, given_.count)) return;
  failed(error);
  sent_--;
  sent_octets_ -= static_cast<uint32_t>(given_octets_);
}

void Leg::send_report(const Now& now, bool bye) {
  if (keyless() || (link_ ? link_remote_.empty() : agreed_.rtcp.empty() || agreed_.rtcp.unspecified())) return;
  SenderInfo sent;
  sent.timestamp = timestamp_ + clock(pending_);
  sent.packets = sent_;
  sent.octets = sent_octets_;
  alignas(8) uint8_t out[rtcp_max_bytes + srtp_overhead_bytes];
  size_t count = rtcp_.write(out, ssrc_, sent, source_, now, bye);
  if (cipher_) count = cipher_->seal_rtcp(out, count);
  if (count == 0) return;
  const bool shared = link_ || agreed_.rtcp == agreed_.rtp;  // rtcp-mux (RFC 5761)
  if (shared) (void)send(out, count);
  else {
    const Address to = report_destination();
    (void)send_datagram(ports_.rtcp(), &to, out, count);
  }
}

Address Leg::report_destination() const {
  const bool is_moved = latch_.remote() != agreed_.rtp.plain();
  return is_moved && reports_port_ != 0 ? latch_.remote().with_port(reports_port_) : agreed_.rtcp;
}

void Leg::bye(const Now& now) {
  if (negotiated_) send_report(now, true);
}

}  // namespace sidetone
