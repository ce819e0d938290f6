#include "plane/leg/leg.h"

#include <errno.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "plane/leg/quality.h"
#include "plane/room/room.h"

namespace sidetone {
namespace {

constexpr int64_t arrival_behind_us = 5'000'000;  // beyond these a clock has been set
constexpr int64_t arrival_ahead_us = 100'000;
constexpr double packet_ms = 20;                   // that the far end takes to fill one
constexpr int32_t round_trip_most = 10 * 65536;    // more is nonsense of the far end
constexpr uint64_t ntp_epoch_sec = 2'208'988'800;  // 1900 to 1970

uint64_t ntp_time(int64_t wall_us) {
  const uint64_t us = static_cast<uint64_t>(wall_us);
  return (us / 1'000'000 + ntp_epoch_sec) << 32 | ((us % 1'000'000) << 32) / 1'000'000;
}

}  // namespace

Leg::Leg(uint32_t id, const Identity& identity, int64_t media_timeout_us)
    : Participant(id, frame_samples_max),
      media_timeout_us_(media_timeout_us),
      ssrc_(identity.ssrc),
      sequence_(identity.sequence),
      timestamp_(identity.timestamp),
      seed_(identity.seed | 1) {
  std::snprintf(cname_, sizeof cname_, "%016llx", static_cast<unsigned long long>(identity.name));
}

uint32_t Leg::random() {  // xorshift64*: spreads reports, guards nothing
  seed_ ^= seed_ >> 12;
  seed_ ^= seed_ << 25;
  seed_ ^= seed_ >> 27;
  return static_cast<uint32_t>((seed_ * 0x2545f4914f6cdd1dULL) >> 32);
}

/** 0.5 to 1.5 times five seconds, over e - 3/2 (RFC 3550 §6.3.1). */
int64_t Leg::report_interval_us() {
  return static_cast<int64_t>((0.5 + random() / 4294967296.0) * report_us / 1.21828);
}

void Leg::negotiate(const Negotiated& parameters, const Now& now) {
  const bool codec_changed = !negotiated_ || parameters.codec != agreed_.codec;
  const bool resumed = parameters.send && (!negotiated_ || !agreed_.send);
  const bool expects = parameters.receive && (!negotiated_ || !agreed_.receive);
  agreed_ = parameters;
  latch_.expect(parameters.rtp, std::exchange(agreed_.learn_from, {}), parameters.held || !parameters.receive);
  if (codec_changed || !parameters.send) relay_.reset();
  if (codec_changed) {
    timestamp_ += static_cast<uint32_t>(pending_);
    pending_ = 0;
    encoder_.reset();
    if (playout_) playout_->restart(parameters.codec);
  }
  if (resumed) marker_ = true;
  if (expects) {
    heard_us_ = now.us;
    timed_out_ = false;
  }
  if (!negotiated_) report_due_us_ = now.us + report_interval_us() / 2;  // the first report comes early (§6.2)
  negotiated_ = true;
}

void Leg::attention(bool wanted) {
  if (wanted) playout_.emplace(agreed_.codec);
  else playout_.reset();
}

/** A key of telephone-event. */
void Leg::tell(const Digit& digit, const Now& now, Notices& notices) {
  inband_.event(digit.key, now.us);
  notices.push_back({NoticeKind::digit, id(), static_cast<uint32_t>(digit.key), digit.duration_ms});
}

void Leg::tone(const ToneDetector::Key& key, const Now& now, Notices&) {
  inband_.tone({key.key, key.duration_ms}, now.us);
}

/** Whether the packet is of the source we hear; a new source is taken at its second packet in sequence. */
bool Leg::belongs(const RtpPacket& packet) {
  if (reception_.started() && packet.ssrc == reception_.ssrc()) {
    other_seen_ = false;
    return true;
  }
  const bool confirmed = other_seen_ && packet.ssrc == other_ssrc_ && packet.sequence == other_next_;
  if (reception_.started() && !confirmed) {
    other_seen_ = true;
    other_ssrc_ = packet.ssrc;
    other_next_ = static_cast<uint16_t>(packet.sequence + 1);
    return false;
  }
  received_before_ += reception_.received();
  lost_before_ += reception_.lost();
  reception_.start(packet.ssrc, packet.sequence);
  event_.reset();
  if (playout_) playout_->restart(agreed_.codec);
  other_seen_ = false;
  last_sr_ = 0;
  return true;
}

void Leg::receive_rtp(const Datagram& datagram, const Now& now, Notices& notices) {
  if (!negotiated_) return;
  if (rtp_is_rtcp(datagram.bytes, datagram.count)) {
    receive_rtcp(datagram, now);
    return;
  }
  RtpPacket packet;
  if (!rtp_parse(datagram.bytes, datagram.count, packet)) return;
  const bool event = packet.payload_type == agreed_.event_payload_type;
  const bool audio = packet.payload_type == agreed_.payload_type;
  const bool comfort_noise = packet.payload_type == 13;  // RFC 3389: a sign of life, played as silence
  if (!event && !audio && !comfort_noise) return;
  if (!latch_.accept(datagram.source, packet.ssrc, packet.sequence, now.us)) return;
  if (!belongs(packet)) return;

  int64_t arrival_us = now.us;
  if (datagram.arrival_us != 0) {
    const int64_t age = now.wall_us - datagram.arrival_us;
    if (age > -arrival_ahead_us && age < arrival_behind_us)
      arrival_us -= age;  // below zero: it came while the tick was taking others
  }
  const Reception::Verdict verdict = reception_.sequence(packet.sequence);
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
  } else if (audio) {
    if (packet.payload_bytes == frame_units) audio_us_ = now.us;
    reception_.arrival(packet.timestamp, arrival_us / JitterBuffer::unit_us);
    if (relayed_to_ != nullptr) relayed_to_->pass_on(packet, agreed_.codec, now);
    if (playout_) (void)playout_->jitter().insert(packet.timestamp, packet.payload, packet.payload_bytes, arrival_us);
  }
}

bool Leg::could_relay(const Leg& to, const Now& now) const {
  const auto plain = [](const Leg& leg) {
    return leg.negotiated_ && leg.agreed_.codec != Codec::g722 && leg.agreed_.ptime_ms == 20;
  };
  return plain(*this) && plain(to) && agreed_.codec == to.agreed_.codec && agreed_.receive && to.agreed_.send &&
         audio_us_ != 0 && now.us - audio_us_ <= Relay::silent_us && !to.latch_.remote().unspecified();
}

/** Sends a packet of another leg as its own. */
void Leg::pass_on(const RtpPacket& packet, Codec codec, const Now& now) {
  Relay::Numbers numbers;
  if (!agreed_.send || codec != agreed_.codec || packet.payload_bytes != frame_units || latch_.remote().unspecified())
    return;
  if (!relay_.number(packet, sequence_, timestamp_, now.us, numbers)) return;
  take_back();
  rtp_write_header(packet_, numbers.first || packet.marker, agreed_.payload_type, numbers.sequence, numbers.timestamp,
                   ssrc_);
  if (numbers.first) Relay::fade_in(codec, packet.payload, packet_ + rtp_header_bytes);
  else std::memcpy(packet_ + rtp_header_bytes, packet.payload, frame_units);
  if (hand_over(rtp_header_bytes + frame_units)) {
    sent_++;
    sent_octets_ += static_cast<uint32_t>(frame_units);
  }
  sequence_ = relay_.next_sequence();
  timestamp_ = relay_.next_timestamp();
  marker_ = false;
}

/** The packet is its own again: what was handed over is sent. */
void Leg::take_back() {
  if (sender_ != nullptr && given_ > 0 && given_at_ == sender_->flushes()) sender_->flush();
}

/** Sends the first `count` bytes of the packet, which stays as it is until the sender has flushed. */
bool Leg::hand_over(size_t count) {
  given_ = sender_ != nullptr ? count : 0;
  if (sender_ == nullptr) return send_datagram(ports_.rtp(), latch_.remote(), packet_, count);
  sender_->add(*this, ports_.rtp(), latch_.remote(), packet_, count);
  given_at_ = sender_->flushes();
  return true;
}

void Leg::receive_rtcp(const Datagram& datagram, const Now& now) {
  RtcpHeard heard;
  if (!negotiated_ || !rtcp_parse(datagram.bytes, datagram.count, ssrc_, heard)) return;
  if (heard.sender_report && reception_.started() && heard.sender_ssrc == reception_.ssrc()) {
    last_sr_ = heard.middle_ntp;
    last_sr_us_ = now.us;
  }
  if (heard.about_us && heard.block.last_sr != 0) {  // RFC 3550 §6.4.1, in units of 1/65536 s
    const int64_t wall_us = datagram.arrival_us != 0 ? datagram.arrival_us : now.wall_us;
    const int32_t units = static_cast<int32_t>(static_cast<uint32_t>(ntp_time(wall_us) >> 16) - heard.block.last_sr -
                                               heard.block.delay_since_sr);
    if (units >= 0 && units < round_trip_most)
      round_trip_us_ = static_cast<uint32_t>(int64_t{units} * 1'000'000 / 65536);
  }
}

void Leg::take(const Now& now, Notices& notices) {
  if (!negotiated_) return;
  Digit digit;
  if (event_.active() && event_.expire(now.us, digit)) {
    tell(digit, now, notices);
  }
  if (inband_.due(now.us, agreed_.event_payload_type >= 0, event_.active(), digit)) {
    Participant::tone({digit.key, digit.duration_ms}, now, notices);
  }
  if (agreed_.receive && !timed_out_ && now.us - heard_us_ >= media_timeout_us_) {
    timed_out_ = true;
    notices.push_back({NoticeKind::media_timeout, id()});
  }
  if (!wanted()) return;
  bool voiced = false;
  const size_t count = playout_->frame(now.us, said(), voiced);
  heard(count, voiced, now, notices);
}

void Leg::give(const Now& now, Notices& notices) {
  if (negotiated_) {
    send_frame(now, notices);
    if (now.us >= report_due_us_) {
      send_report(now, false);
      report_due_us_ = now.us + report_interval_us();
    }
  } else {
    pause(1);
  }
  settle(notices);
}

void Leg::send_frame(const Now& now, Notices& notices) {
  int16_t pcm[frame_samples_max];
  if (relay_.on() && !relay_.fades_out()) {  // another leg's packets leave in place of its own
    if (taped()) (void)hears(pcm, frame_units, now, notices);
    speaking_ = true;
    return;
  }
  const bool fades = relay_.fades_out() || relay_.ending();
  if (fades) take_back();
  uint8_t* octets = packet_ + rtp_header_bytes + pending_;
  bool voiced = true;
  if (agreed_.codec != Codec::g722 && hears_room_only() && !fades) {
    if (agreed_.send) seat()->room->encode(*seat(), agreed_.codec, octets);
  } else {
    voiced = hears(pcm, codec_samples(agreed_.codec, frame_units), now, notices);
    if (fades && !voiced) std::fill_n(pcm, frame_units, int16_t{0});
    if (relay_.fades_out()) relay_.fade_out(pcm);
    else if (relay_.ending())
      timestamp_ += relay_.resume(agreed_.codec, pcm, now.us) * static_cast<uint32_t>(frame_units);
    voiced = voiced || fades;
    if (agreed_.send) encoder_.encode(agreed_.codec, voiced ? pcm : nullptr, octets, frame_units);
  }
  if (agreed_.send) {
    if (voiced && !speaking_) marker_ = true;  // the first packet of a talkspurt (RFC 3551 §4.1)
    pending_ += frame_units;
    const size_t units = agreed_.ptime_ms * (rtp_clock_hz / 1000);
    while (pending_ >= units) send_packet(units);
  } else {
    timestamp_ += static_cast<uint32_t>(pending_ + frame_units);
    pending_ = 0;
  }
  speaking_ = voiced;
}

void Leg::send_packet(size_t units) {
  rtp_write_header(packet_, marker_, agreed_.payload_type, sequence_, timestamp_, ssrc_);
  if (!latch_.remote().unspecified()) {
    const size_t count = rtp_header_bytes + units;
    const bool stays = pending_ == units;  // else the next packet is built in the same place
    if (stays ? hand_over(count) : send_datagram(ports_.rtp(), latch_.remote(), packet_, count)) {
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
  // As `send_datagram`: the refusal was of an earlier packet, and the error has been taken by telling it.
  if (error == ECONNREFUSED && send_datagram(ports_.rtp(), latch_.remote(), packet_, given_)) return;
  sent_--;
  sent_octets_ -= static_cast<uint32_t>(given_ - rtp_header_bytes);
}

void Leg::skip(uint32_t frames) {
  pause(frames);
  timestamp_ += static_cast<uint32_t>(pending_ + frames * frame_units);
  pending_ = 0;
  marker_ = true;
}

void Leg::send_report(const Now& now, bool bye) {
  if (agreed_.rtcp.empty() || agreed_.rtcp.unspecified()) return;
  SenderInfo sender;
  sender.ntp = ntp_time(now.wall_us);
  sender.timestamp = timestamp_ + static_cast<uint32_t>(pending_);
  sender.packets = sent_;
  sender.octets = sent_octets_;
  ReportBlock block;
  const bool heard = reception_.started() && reception_.received() > 0;
  if (heard) {
    block.ssrc = reception_.ssrc();
    block.fraction_lost = reception_.fraction_lost();
    block.lost = reception_.lost();
    block.highest = reception_.extended_highest();
    block.jitter = reception_.jitter_units();
    block.last_sr = last_sr_;
    block.delay_since_sr = last_sr_ == 0 ? 0 : static_cast<uint32_t>((now.us - last_sr_us_) * 65536 / 1'000'000);
  }
  uint8_t out[rtcp_max_bytes];
  const size_t count = rtcp_write(out, ssrc_, sent_ > 0 ? &sender : nullptr, heard ? &block : nullptr, cname_, bye);
  const bool shared = agreed_.rtcp == agreed_.rtp;  // rtcp-mux (RFC 5761)
  (void)send_datagram(shared ? ports_.rtp() : ports_.rtcp(), shared ? latch_.remote() : agreed_.rtcp, out, count);
}

void Leg::bye(const Now& now) {
  if (negotiated_) send_report(now, true);
}

Counters Leg::counters() const {
  Counters counters;
  counters.received = received_before_ + reception_.received();
  counters.sent = sent_;
  counters.lost = lost_before_ + reception_.lost();
  counters.jitter_us = reception_.jitter_units() * static_cast<uint32_t>(JitterBuffer::unit_us);
  counters.round_trip_us = round_trip_us_;
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
