#include "plane/leg/leg.h"

#include <algorithm>
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
  } else {
    rest_cipher();  // nothing is sent to a far end that has gone or whose consent has run out (RFC 7675 §5.1)
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
    if (!cipher_) cipher_ = cipher_before_ ? std::move(cipher_before_) : std::make_unique<LegCipher>();
    cipher_->agree(*keys);
  } else {
    rest_cipher();
  }
}

/** Ends the encryption. What it dropped stays counted, and a far end that comes back under its key goes on where it
 * was. */
void Leg::rest_cipher() {
  if (!cipher_) return;
  take_back();
  given_ = {};
  cipher_before_ = std::move(cipher_);
}

void Leg::negotiate(const Negotiated& parameters, const Now& now, const SrtpKeys* keys) {
  encrypt(keys);
  const bool codec_changed = !negotiated_ || parameters.codec != agreed_.codec;
  const uint32_t pending = clock(pending_);  // on the clock of the codec before
  source_.now().change_clock(codec_clock_scale(agreed_.codec), codec_clock_scale(parameters.codec));
  if (!negotiated_ || parameters.event_clock_hz != agreed_.event_clock_hz) event_.clock(parameters.event_clock_hz);
  const bool resumed = parameters.send && (!negotiated_ || !agreed_.send);
  const bool expects = parameters.awaits_audio() && (!negotiated_ || !agreed_.awaits_audio());
  if (!agreed_.hears()) source_.now().excuse_gap();
  agreed_ = parameters;
  latch_.expect(parameters.rtp, std::exchange(agreed_.learn_from, {}), parameters.held || !parameters.receive);
  if (codec_changed || !parameters.send) relay_.reset();
  if (codec_changed) {
    timestamp_ += pending;
    pending_ = 0;
    encoder_.reset();
    opus_ = parameters.codec == Codec::opus ? OpusVoiceEncoder::create() : nullptr;
    say_up_to(codec_samples(parameters.codec, frame_units));
    restart_playout();
  }
  if (opus_) opus_->limit(parameters.max_bitrate);
  if (resumed) marker_ = true;
  if (expects) {
    heard_us_ = now.us;
    timed_out_ = false;
  }
  if (!negotiated_) rtcp_.begin(now);
  if (!negotiated_ && parameters.first_sequence >= 0) {
    sequence_ = static_cast<uint16_t>(parameters.first_sequence);
    timestamp_ = parameters.first_timestamp;
  }
  negotiated_ = true;
}

void Leg::pipe(uint32_t own, uint32_t theirs, bool at_once) {
  ssrc_ = own;
  pipe_ = true;
  pipe_source_ = theirs;
  pipe_at_once_ = at_once;
}

void Leg::attention(bool wanted) {
  count_late();
  if (wanted) playout_.emplace(agreed_.codec);
  else playout_.reset();
}

/** Keeps the count of the playout, which is about to go. */
void Leg::count_late() {
  if (playout_ && playout_->heard()) late_before_ += playout_->late();
}

/** Begins the playout anew, for another source or codec. */
void Leg::restart_playout() {
  count_late();
  if (playout_) playout_->restart(agreed_.codec);
}

/** A key of telephone-event. */
void Leg::tell(const Digit& digit, const Now& now, Notices& notices) {
  if (!key_rate_.permits(now.us)) return;
  pressed_ = 0;
  inband_.event(digit.key, now.us);
  notices.push_back({NoticeKind::digit, id(), static_cast<uint32_t>(digit.key), digit.duration_ms});
}

void Leg::tone(const ToneDetector::Key& key, const Now& now, Notices&) {
  inband_.tone({key.key, key.duration_ms}, now.us);
}

/** A key is down. One that was told already, or that goes down while another one is down, is not told again. */
void Leg::press(char key, bool inband, const Now& now, Notices& notices) {
  if (pressed_ != 0 || !press_rate_.permits(now.us)) return;
  pressed_ = key;
  notices.push_back({NoticeKind::key_down, id(), static_cast<uint32_t>(key), 0, {inband ? 1u : 0u, 0, 0, 0}});
}

/** Tells a key that is down in the audio, and the end of one of which no digit comes: its source was left, or its rate
 * was too high. The tone of an event that was told is no key. */
void Leg::watch_tone(const Now& now, Notices& notices) {
  const char tone = tone_down();
  if (tone != 0) {
    if (!inband_.follows_event(tone, now.us)) press(tone, true, now, notices);
  } else if (pressed_ != 0 && !event_.active() && !inband_.waiting()) {
    pressed_ = 0;
    notices.push_back({NoticeKind::key_up, id()});
  }
}

/** Whether the packet is of the source we hear; a new source is taken at its second packet in sequence. */
bool Leg::belongs(const RtpPacket& packet, bool event) {
  const bool had_events = event_source_.is(source_.now().ssrc());
  const RtpSource::Verdict verdict = source_.judge(packet, spoke_ || !event);
  if (verdict != RtpSource::Verdict::anew) return verdict == RtpSource::Verdict::known;
  // One that sent nothing but events goes on beside the audio, which is of another from the beginning.
  if (std::exchange(spoke_, false) && had_events) event_.abandon();
  restart_playout();
  rtcp_.forget_sender();
  return true;
}

/** Counts a packet of the source that is heard. */
Reception::Verdict Leg::counted(const RtpPacket& packet, bool event) {
  if (!agreed_.hears()) source_.now().excuse_gap();
  return event ? source_.now().sequence(packet.sequence) : source_.now().sequence(packet.sequence, packet.timestamp);
}

/** Whether the packet of an event is of the source of events, which may not be that of the audio. */
bool Leg::brings_event(const RtpPacket& packet, bool of_audio) {
  const EventSource::Verdict verdict = event_source_.judge(packet, of_audio);
  if (verdict == EventSource::Verdict::anew) event_.reset();
  return verdict != EventSource::Verdict::stranger;
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
    if (!pipe_ && (link_ || latch_.may_come_from(datagram.source)) && other_.take(packet.payload_type, now.us))
      notices.push_back({NoticeKind::payload_type, id(), packet.payload_type});
    return;
  }
  if (pipe_ && packet.ssrc != pipe_source_) return;
  if (!link_ && !latch_.accept(datagram.source, packet.ssrc, packet.sequence, now.us)) return;
  if (audio) other_.over();
  const bool beside = event && source_.heard() && !source_.is(packet.ssrc);
  if (beside) source_.note(packet);
  else if (!belongs(packet, event)) return;
  if (event && !brings_event(packet, !beside)) return;
  const Reception::Verdict verdict = beside ? Reception::Verdict::accepted : counted(packet, event);
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
    if (event_.active()) press(event_.down(), false, now, notices);
  } else if (audio && (agreed_.holding || (agreed_.send && !agreed_.receive))) {
    return;  // we hold the far end, or it said that it sends nothing: it is neither heard nor recorded
  } else if (audio) {
    spoke_ = true;
    if (packet.payload_bytes == frame_units) audio_us_ = now.us;
    else if (packet.payload_bytes > 0) uneven_us_ = now.us;
    const int64_t arrival = arrival_us(datagram, now);
    source_.now().arrival(packet.timestamp, arrival * codec_clock_scale(agreed_.codec) / JitterBuffer::unit_us);
    if (relayed_to_ != nullptr) relayed_to_->pass_on(packet, agreed_.codec, now);
    if (playout_ && packet.marker) {
      if (pipe_) playout_->jitter().begin_anew();
      else playout_->jitter().begin_spurt();
    }
    if (playout_) playout_->insert(packet.timestamp, packet.payload, packet.payload_bytes, arrival);
  }
}

bool Leg::could_relay(const Leg& to, const Now& now) const {
  const auto plain = [](const Leg& leg) {
    return leg.negotiated_ && has_octets(leg.agreed_.codec) && leg.agreed_.ptime_ms == 20;
  };
  // A leg that sends keys of its own must number its packets itself.
  return !to.keys_.busy() && plain(*this) && plain(to) && agreed_.codec == to.agreed_.codec && agreed_.receive &&
         to.agreed_.send && audio_us_ != 0 && now.us - audio_us_ <= patience_us(to) && now.us - uneven_us_ >= even_us &&
         !to.remote().unspecified();
}

void Leg::receive_rtcp(const Datagram& datagram, const Now& now) {
  if (!negotiated_ || keyless()) return;
  const Now arrived{arrival_us(datagram, now), datagram.arrival_us != 0 ? datagram.arrival_us : now.wall_us};
  alignas(8) uint8_t clear[Datagram::bytes_max];
  const uint8_t* bytes = datagram.bytes;
  size_t count = datagram.count;
  if (cipher_) {
    if (!cipher_->open_rtcp(datagram, clear, count, now.us)) return;
    if (link_) link_->hear(datagram.source, now.us);
    bytes = clear;
  }
  const Address source = datagram.source.plain();
  if (rtcp_.take(bytes, count, ssrc_, source_, arrived) && source.same_host(latch_.remote()))
    reports_port_ = source.port();
}

void Leg::take(const Now& now, Notices& notices) {
  if (!negotiated_) return;
  Digit digit;
  if (event_.active() && event_.expire(now.us, digit)) tell(digit, now, notices);
  if (inband_.due(now.us, agreed_.event_payload_type >= 0, event_.active(), digit)) {
    pressed_ = 0;
    Participant::tone({digit.key, digit.duration_ms}, now, notices);
  }
  // A browser that is muted may send nothing for long; of a link it is the consent that tells.
  const int64_t patience_us = pipe_ ? pipe_silent_us : media_timeout_us_;
  if (!link_ && agreed_.awaits_audio() && !timed_out_ && now.us - heard_us_ >= patience_us) {
    timed_out_ = true;
    notices.push_back({pipe_ ? NoticeKind::pipe_silent : NoticeKind::media_timeout, id()});
  }
  if (wanted()) {
    bool voiced = false;
    const size_t count = playout_->frame(now.us, said(), voiced);
    heard(count, voiced, now, notices);
  }
  watch_tone(now, notices);
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

bool Leg::recordable(const Now& now, bool hears_something) const {
  if (!agreed_.send || !agreed_.receive) return false;  // held
  return hears_something || (packet_us_ != 0 && now.us - packet_us_ < interrupted_us);
}

void Leg::skip(uint32_t frames) {
  pause(frames);
  timestamp_ += clock(pending_ + frames * frame_units);
  pending_ = 0;
  marker_ = true;
}

Counters Leg::counters() const {
  Counters counters;
  counters.received = source_.received();
  counters.sent = sent_;
  counters.lost = source_.lost();
  counters.jitter_us =
      source_.now().jitter_units() * static_cast<uint32_t>(JitterBuffer::unit_us) / codec_clock_scale(agreed_.codec);
  counters.round_trip_us = rtcp_.round_trip_us();
  if (const LegCipher* cipher = cipher_ ? cipher_.get() : cipher_before_.get()) {
    counters.srtp_forged = cipher->forged();
    counters.srtp_replayed = cipher->replayed();
  }
  if (counters.received == 0) return counters;
  counters.late = late_before_;
  if (playout_ && playout_->heard()) {
    counters.late += playout_->late();
    counters.delay_us = static_cast<uint32_t>(std::clamp<int64_t>(playout_->delay_us(), 0, 1'000'000));
  }
  const double expected = static_cast<double>(counters.received) + std::max(counters.lost, 0);
  const double unheard = std::min((std::max(counters.lost, 0) + static_cast<double>(counters.late)) / expected, 1.0);
  const double one_way_ms = packet_ms + (counters.round_trip_us / 2.0 + counters.delay_us) / 1000;
  counters.mos_milli = static_cast<uint32_t>(mos_estimate(unheard, one_way_ms) * 1000 + 0.5);
  return counters;
}

}  // namespace sidetone
