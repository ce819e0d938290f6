#include "plane/leg/leg.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "plane/leg/quality.h"
#include "plane/room/room.h"

namespace sidetone {
namespace {

constexpr int64_t arrival_behind_us = 5'000'000;  // beyond these a clock has been set
constexpr int64_t arrival_ahead_us = 100'000;
constexpr double packet_ms = 20;  // that the far end takes to fill one

}  // namespace

Leg::Leg(uint32_t id, const Identity& identity, int64_t media_timeout_us)
    : Participant(id, frame_samples_max),
      media_timeout_us_(media_timeout_us),
      ssrc_(identity.ssrc),
      sequence_(identity.sequence),
      timestamp_(identity.timestamp),
      rtcp_(identity.name, identity.seed) {}

Leg::~Leg() {
  if (port_) port_->close_link(std::move(link_));
}

void Leg::link(std::shared_ptr<WebrtcPort> port, std::shared_ptr<WebrtcLink> link) {
  port_ = std::move(port);
  link_ = std::move(link);
}

/** Takes over what the link has come to: keys, an end, another address. */
void Leg::follow_link(Notices& notices) {
  if (link_version_ != link_->remote_version()) {
    take_back();  // what was handed over goes where it was to go
    link_remote_ = link_->remote(link_version_);
  }
  const LinkState state = link_->state();
  if (state == link_state_) return;
  link_state_ = state;
  if (state == LinkState::connected) {
    cipher_ = std::make_unique<LegCipher>();
    cipher_->agree(link_->keys());
  }
  notices.push_back({NoticeKind::link, id(), static_cast<uint32_t>(state)});
}

void Leg::drain_link(LinkPackets& packets, const Now& now, Notices& notices) {
  follow_link(notices);
  if (!link_->waiting()) return;
  link_->take(packets);
  size_t at = 0;
  for (const LinkPackets::Entry& entry : packets.entries) {
    Datagram datagram;
    datagram.source = entry.source;
    datagram.arrival_us = entry.arrival_us;
    datagram.count = entry.count;
    datagram.bytes = packets.bytes.data() + at;
    at += entry.count;
    receive_rtp(datagram, now, notices);
  }
}

/** Encrypts the stream with these keys from now on; nullptr: it is in clear. A WebRTC leg has those of its link. */
void Leg::encrypt(const SrtpKeys* keys) {
  if (link_) return;
  if (keys != nullptr) {
    if (!cipher_) cipher_ = std::make_unique<LegCipher>();
    cipher_->agree(*keys);
  } else if (cipher_) {
    take_back();
    given_ = {};
    forged_before_ += cipher_->forged();
    replayed_before_ += cipher_->replayed();
    cipher_.reset();
  }
}

void Leg::negotiate(const Negotiated& parameters, const Now& now, const SrtpKeys* keys) {
  encrypt(keys);
  const bool codec_changed = !negotiated_ || parameters.codec != agreed_.codec;
  const uint32_t pending = clock(pending_);  // on the clock of the codec before
  if (!negotiated_ || parameters.event_clock_hz != agreed_.event_clock_hz) event_.clock(parameters.event_clock_hz);
  const bool resumed = parameters.send && (!negotiated_ || !agreed_.send);
  const bool expects = parameters.awaits_audio() && (!negotiated_ || !agreed_.awaits_audio());
  agreed_ = parameters;
  latch_.expect(parameters.rtp, std::exchange(agreed_.learn_from, {}), parameters.held || !parameters.receive);
  if (codec_changed || !parameters.send) relay_.reset();
  if (codec_changed) {
    timestamp_ += pending;
    pending_ = 0;
    encoder_.reset();
    opus_ = parameters.codec == Codec::opus ? OpusVoiceEncoder::create() : nullptr;
    say_up_to(codec_samples(parameters.codec, frame_units));
    if (playout_) playout_->restart(parameters.codec);
  }
  if (resumed) marker_ = true;
  if (expects) {
    heard_us_ = now.us;
    timed_out_ = false;
  }
  if (!negotiated_) rtcp_.begin(now);
  negotiated_ = true;
}

void Leg::pipe(uint32_t own, uint32_t theirs, bool at_once) {
  ssrc_ = own;
  pipe_ = true;
  pipe_source_ = theirs;
  pipe_at_once_ = at_once;
}

void Leg::attention(bool wanted) {
  if (wanted) playout_.emplace(agreed_.codec);
  else playout_.reset();
}

/** A key of telephone-event. */
void Leg::tell(const Digit& digit, const Now& now, Notices& notices) {
  if (!key_rate_.permits(now.us)) return;
  inband_.event(digit.key, now.us);
  notices.push_back({NoticeKind::digit, id(), static_cast<uint32_t>(digit.key), digit.duration_ms});
}

void Leg::tone(const ToneDetector::Key& key, const Now& now, Notices&) {
  inband_.tone({key.key, key.duration_ms}, now.us);
}

/** Whether the packet is of the source we hear; a new source is taken at its second packet in sequence. */
bool Leg::belongs(const RtpPacket& packet) {
  const RtpSource::Verdict verdict = source_.judge(packet);
  if (verdict != RtpSource::Verdict::anew) return verdict == RtpSource::Verdict::known;
  event_.reset();
  if (playout_) playout_->restart(agreed_.codec);
  rtcp_.forget_sender();
  return true;
}

/** When a datagram came, on the monotonic clock: by the kernel's stamp, where the clocks agree with it. */
int64_t Leg::arrival_us(const Datagram& datagram, const Now& now) const {
  if (datagram.arrival_us == 0) return now.us;
  const int64_t age = now.wall_us - datagram.arrival_us;  // below zero: it came while the tick was taking others
  return age > -arrival_ahead_us && age < arrival_behind_us ? now.us - age : now.us;
}

void Leg::receive_rtp(const Datagram& datagram, const Now& now, Notices& notices) {
  if (!negotiated_ || keyless()) return;
  if (rtp_is_rtcp(datagram.bytes, datagram.count)) {
    receive_rtcp(datagram, now);
    return;
  }
  if (!cipher_) {
    hear(datagram, now, notices);
    return;
  }
  if (!link_ && !latch_.may_come_from(datagram.source)) return;
  alignas(8) uint8_t clear[Datagram::bytes_max];
  Datagram opened = datagram;
  opened.bytes = clear;
  if (!cipher_->open(datagram, clear, opened.count, now.us)) return;
  if (link_) link_->hear(datagram.source, now.us);
  hear(opened, now, notices);
}

/** Takes an RTP packet in clear. */
void Leg::hear(const Datagram& datagram, const Now& now, Notices& notices) {
  RtpPacket packet;
  if (!rtp_parse(datagram.bytes, datagram.count, packet)) return;
  const int32_t type = packet.payload_type;
  const bool event = type == agreed_.event_payload_type || type == agreed_.own_event_payload_type;
  const bool audio = type == agreed_.payload_type || type == agreed_.own_payload_type;
  const bool comfort_noise = type == 13;  // RFC 3389: a sign of life, played as silence
  if (!event && !audio && !comfort_noise) {
    if (!pipe_ && (link_ || latch_.may_come_from(datagram.source)) && other_.take(packet.payload_type))
      notices.push_back({NoticeKind::payload_type, id(), packet.payload_type});
    return;
  }
  if (audio) other_.over();
  if (pipe_ && packet.ssrc != pipe_source_) return;
  if (!link_ && !latch_.accept(datagram.source, packet.ssrc, packet.sequence, now.us)) return;
  if (!belongs(packet)) return;
  const Reception::Verdict verdict =
      event ? source_.now().sequence(packet.sequence) : source_.now().sequence(packet.sequence, packet.timestamp);
  if (verdict == Reception::Verdict::rejected) return;
  heard_us_ = now.us;
  packet_us_ = now.us;
  timed_out_ = false;
  if (verdict == Reception::Verdict::duplicate_or_late) return;
  if (!media_started_) {
    media_started_ = true;
    notices.push_back({NoticeKind::media_started, id()});
  }
  if (event) {
    Digit digit;
    if (event_.receive(packet.payload, packet.payload_bytes, packet.timestamp, packet.marker, now.us, digit)) {
      tell(digit, now, notices);
    }
  } else if (audio && (agreed_.holding || (agreed_.send && !agreed_.receive))) {
    return;  // we hold the far end, or it said that it sends nothing: it is neither heard nor recorded
  } else if (audio) {
    if (packet.payload_bytes == frame_units) audio_us_ = now.us;
    const int64_t arrival = arrival_us(datagram, now);
    source_.now().arrival(packet.timestamp, arrival * codec_clock_scale(agreed_.codec) / JitterBuffer::unit_us);
    if (relayed_to_ != nullptr) relayed_to_->pass_on(packet, agreed_.codec, now);
    if (playout_ && pipe_ && packet.marker) playout_->jitter().begin_anew();
    if (playout_) playout_->insert(packet.timestamp, packet.payload, packet.payload_bytes, arrival);
  }
}

bool Leg::could_relay(const Leg& to, const Now& now) const {
  const auto plain = [](const Leg& leg) {
    return leg.negotiated_ && has_octets(leg.agreed_.codec) && leg.agreed_.ptime_ms == 20;
  };
  // A leg that sends keys of its own must number its packets itself.
  return !to.keys_.busy() && plain(*this) && plain(to) && agreed_.codec == to.agreed_.codec && agreed_.receive &&
         to.agreed_.send && audio_us_ != 0 && now.us - audio_us_ <= patience_us(to) && !to.remote().unspecified();
}

/** Sends a packet of another leg as its own. */
void Leg::pass_on(const RtpPacket& packet, Codec codec, const Now& now) {
  Relay::Numbers numbers;
  if (!agreed_.send || codec != agreed_.codec || packet.payload_bytes != frame_units || remote().unspecified()) return;
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

void Leg::receive_rtcp(const Datagram& datagram, const Now& now) {
  if (!negotiated_ || keyless()) return;
  const int64_t wall_us = datagram.arrival_us != 0 ? datagram.arrival_us : now.wall_us;
  if (!cipher_) {
    (void)rtcp_.take(datagram.bytes, datagram.count, ssrc_, source_, wall_us, now);
    return;
  }
  alignas(8) uint8_t clear[Datagram::bytes_max];
  size_t count = 0;
  if (!cipher_->open_rtcp(datagram, clear, count, now.us)) return;
  if (link_) link_->hear(datagram.source, now.us);
  (void)rtcp_.take(clear, count, ssrc_, source_, wall_us, now);
}

void Leg::take(const Now& now, Notices& notices) {
  if (!negotiated_) return;
  Digit digit;
  if (event_.active() && event_.expire(now.us, digit)) tell(digit, now, notices);
  if (inband_.due(now.us, agreed_.event_payload_type >= 0, event_.active(), digit)) {
    Participant::tone({digit.key, digit.duration_ms}, now, notices);
  }
  // A browser that is muted may send nothing for long; of a link it is the consent that tells.
  const int64_t patience_us = pipe_ ? pipe_silent_us : media_timeout_us_;
  if (!link_ && agreed_.awaits_audio() && !timed_out_ && now.us - heard_us_ >= patience_us) {
    timed_out_ = true;
    notices.push_back({pipe_ ? NoticeKind::pipe_silent : NoticeKind::media_timeout, id()});
  }
  if (!wanted()) return;
  bool voiced = false;
  const size_t count = playout_->frame(now.us, said(), voiced);
  heard(count, voiced, now, notices);
}

void Leg::give(const Now& now, Notices& notices) {
  if (negotiated_) {
    send_frame(now, notices);
    if (rtcp_.due(now)) send_report(now, false);
  } else {
    pause(1);
  }
  settle(notices);
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
  uint8_t* octets = packet_ + rtp_header_bytes + pending_;
  bool voiced = true;
  if (is_g711(agreed_.codec) && hears_room_only() && !fades && keyed.key == 0) {
    if (agreed_.send) seat()->room->encode(*seat(), agreed_.codec, octets);
  } else {
    voiced = hears(pcm, codec_samples(agreed_.codec, frame_units), now, notices);
    if (keyed.key != 0) {
      KeySender::tones(keyed, pcm, codec_samples(agreed_.codec, frame_units));
      voiced = true;
    }
    if (fades && !voiced) std::fill_n(pcm, codec_samples(agreed_.codec, frame_units), int16_t{0});
    if (relay_.fades_out()) relay_.fade_out(agreed_.codec, pcm);
    else if (relay_.ending()) resume_own_frames(pcm, now);
    voiced = voiced || fades;
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
  } else {
    timestamp_ += clock(pending_ + frame_units);
    pending_ = 0;
  }
  speaking_ = voiced;
}

/** Encodes one frame of 20 ms of a codec that has packets, `pending_max` octets at most. nullptr: silence. Returns 0
 * where nothing need be sent (DTX). */
size_t Leg::encode_packet(const int16_t* pcm, uint8_t* out) {
  if (agreed_.codec == Codec::opus) return opus_ ? opus_->encode(pcm, out, pending_max) : 0;
  const size_t samples = codec_samples(agreed_.codec, frame_units);
  if (pcm == nullptr) std::memset(out, 0, samples * l16_sample_bytes);
  else l16_encode(pcm, out, samples);
  return samples * l16_sample_bytes;
}

/** Sends one frame of 20 ms as a packet, or nothing where nothing need be sent. nullptr: silence. */
void Leg::send_coded(const int16_t* pcm) {
  take_back();
  const size_t count = encode_packet(pcm, packet_ + rtp_header_bytes);
  if (count > 0) {
    rtp_write_header(packet_, marker_, agreed_.payload_type, sequence_, timestamp_, ssrc_);
    if (!remote().unspecified() && hand_over(rtp_header_bytes + count)) {
      sent_++;
      sent_octets_ += static_cast<uint32_t>(count);
    }
    sequence_++;
  }
  marker_ = count == 0;  // the next one begins a talkspurt
  timestamp_ += clock(frame_units);
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

bool Leg::recordable(const Now& now, bool hears_something) const {
  if (!agreed_.send || !agreed_.receive) return false;  // held
  return hears_something || (packet_us_ != 0 && now.us - packet_us_ < interrupted_us);
}

void Leg::refused(int error) {
  // The refusal concerns an earlier packet, as in `send_datagram`. The system has told it now, so this packet may go.
  if (error == ECONNREFUSED && send(given_.bytes, given_.count)) return;
  failed(error);
  sent_--;
  sent_octets_ -= static_cast<uint32_t>(given_octets_);
}

void Leg::skip(uint32_t frames) {
  pause(frames);
  timestamp_ += clock(pending_ + frames * frame_units);
  pending_ = 0;
  marker_ = true;
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
  else (void)send_datagram(ports_.rtcp(), &agreed_.rtcp, out, count);
}

void Leg::bye(const Now& now) {
  if (negotiated_) send_report(now, true);
}

Counters Leg::counters() const {
  Counters counters;
  counters.received = source_.received();
  counters.sent = sent_;
  counters.lost = source_.lost();
  counters.jitter_us =
      source_.now().jitter_units() * static_cast<uint32_t>(JitterBuffer::unit_us) / codec_clock_scale(agreed_.codec);
  counters.round_trip_us = rtcp_.round_trip_us();
  counters.srtp_forged = forged_before_ + (cipher_ ? cipher_->forged() : 0);
  counters.srtp_replayed = replayed_before_ + (cipher_ ? cipher_->replayed() : 0);
  if (counters.received == 0) return counters;
  if (playout_ && playout_->heard()) {
    counters.late = playout_->late();
    counters.delay_us = static_cast<uint32_t>(std::clamp<int64_t>(playout_->delay_us(), 0, 1'000'000));
  }
  const double expected = static_cast<double>(counters.received) + std::max(counters.lost, 0);
  const double unheard = std::min((std::max(counters.lost, 0) + static_cast<double>(counters.late)) / expected, 1.0);
  const double one_way_ms = packet_ms + (counters.round_trip_us / 2.0 + counters.delay_us) / 1000;
  counters.mos_milli = static_cast<uint32_t>(mos_estimate(unheard, one_way_ms) * 1000 + 0.5);
  return counters;
}

}  // namespace sidetone
