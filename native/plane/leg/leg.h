// One leg: a port pair and everything that runs on it. What arrives is judged, counted and (only while someone listens)
// buffered and decoded; what leaves is one frame a tick from the player, or silence.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plane/audio/codec.h"
#include "plane/cache.h"
#include "plane/io/port.h"
#include "plane/io/rtp_endpoint.h"
#include "plane/io/sender.h"
#include "plane/leg/inband_keys.h"
#include "plane/leg/key_sender.h"
#include "plane/leg/latch.h"
#include "plane/leg/playout.h"
#include "plane/leg/relay.h"
#include "plane/notice.h"
#include "plane/participant.h"
#include "plane/rtp/rtcp_session.h"
#include "plane/rtp/rtp.h"
#include "plane/rtp/rtp_source.h"
#include "plane/rtp/telephone_event.h"
#include "plane/srtp/leg_cipher.h"

namespace sidetone {

/** What an offer and its answer agreed on (src/media/engine.ts, RtpParameters). */
struct Negotiated {
  Address rtp;  // where SDP asks for RTP
  Address rtcp;
  std::vector<AddressRange> learn_from;  // the hosts that another source of RTP may be learnt from
  bool held = false;                     // the call is on hold: no source is learnt
  Codec codec = Codec::pcmu;
  uint8_t payload_type = 0;
  int32_t event_payload_type = -1;
  uint32_t ptime_ms = 20;
  bool send = true;
  bool receive = true;
};

/** What a leg has counted since it was opened (RFC 3550 §6.4). */
struct Counters {
  uint32_t received = 0;
  uint32_t sent = 0;
  int32_t lost = 0;
  uint32_t late = 0;  // came, but after they were due to be heard
  uint32_t jitter_us = 0;
  uint32_t delay_us = 0;       // that the jitter buffer added to the last frame; 0: nobody listens
  uint32_t round_trip_us = 0;  // by the far end's last report; 0: it has not said
  uint32_t mos_milli = 0;      // a thousandth of the MOS; 0: nothing was heard of the far end
  uint32_t srtp_forged = 0;    // dropped: authentication failed
  uint32_t srtp_replayed = 0;  // dropped: came before, or behind the replay window
};

class Leg final : public Participant, public RtpEndpoint {
 public:
  /** Random numbers that a leg begins with: its SSRC, where its numbers start, its CNAME, and when it reports. */
  struct Identity {
    uint32_t ssrc;
    uint32_t timestamp;
    uint16_t sequence;
    uint64_t name;
    uint64_t seed;
  };

  Leg(uint32_t id, const Identity& identity, int64_t media_timeout_us);

  /** The sockets of the leg. */
  PortPair& ports() { return ports_; }
  int rtp_fd() const override { return ports_.rtp(); }
  uint32_t ssrc() const { return ssrc_; }

  /** Applies an offer or answer. Without `keys` the stream is in clear. */
  void negotiate(const Negotiated& parameters, const Now& now, const SrtpKeys* keys = nullptr);
  uint32_t rate_hz() const override { return codec_rate_hz(agreed_.codec); }
  Leg* rtp() override { return this; }

  void fetch() const override {
    cache_fetch(this, 128);
    cache_fetch(&negotiated_, reinterpret_cast<const char*>(&packet_) - reinterpret_cast<const char*>(&negotiated_));
    cache_fetch(&playout_, Playout::touched_bytes);
  }
  void fetch_audio() const override {
    if (playout_) playout_->fetch_audio();
  }
  void receive_rtp(const Datagram& datagram, const Now& now, Notices& notices) override;
  /** Takes one datagram that came to the RTCP socket, or to the RTP socket with rtcp-mux. */
  void receive_rtcp(const Datagram& datagram, const Now& now);
  void take(const Now& now, Notices& notices) override;
  void give(const Now& now, Notices& notices) override;
  /** Jumps over so many frames: the timestamps go on, nothing is sent. */
  void skip(uint32_t frames) override;
  /** Hands its packets to this sender from now on. nullptr: the leg sends each packet itself. */
  void send_through(Sender* sender) { sender_ = sender; }
  void refused(int error) override;
  /** Whether the packets of this leg come, and could leave as those of `to` undecoded. */
  bool could_relay(const Leg& to, const Now& now) const;
  /** Forwards every audio packet to this leg without decoding it. nullptr stops forwarding. */
  void relay_to(Leg* to) { relayed_to_ = to; }
  bool relays() const { return relayed_to_ != nullptr; }
  /** The packets of another leg that leave in place of this leg's own frames. */
  Relay& relay() { return relay_; }
  /** Sends keys after those that wait. False when too many wait. */
  bool send_keys(uint32_t number, std::string keys, uint32_t duration_ms, uint32_t gap_ms) {
    return keys_.add(number, std::move(keys), duration_ms, gap_ms);
  }
  /** Sends RTCP BYE: the leg ends. */
  void bye(const Now& now);
  Counters counters() const;

 private:
  void hear(const Datagram& datagram, const Now& now, Notices& notices);
  void encrypt(const SrtpKeys* keys);
  bool belongs(const RtpPacket& packet);
  int64_t arrival_us(const Datagram& datagram, const Now& now) const;
  void pass_on(const RtpPacket& packet, Codec codec, const Now& now);
  bool hand_over(size_t count);
  bool send_now(const uint8_t* bytes, size_t count);
  void take_back();
  void attention(bool wanted) override;
  void tone(const ToneDetector::Key& key, const Now& now, Notices& notices) override;
  void tell(const Digit& digit, const Now& now, Notices& notices);
  bool recordable(const Now& now, bool hears_something) const override;
  void send_frame(const Now& now, Notices& notices);
  void send_packet(size_t units);
  void send_event(const KeySender::Step& step);
  void send_report(const Now& now, bool bye);

  /** After so long without a packet there is nothing to record of the far end. A shorter pause is loss, heard as such.
   */
  static constexpr int64_t interrupted_us = 500'000;
  static constexpr size_t pending_max = 1024;

  PortPair ports_;
  Sender* sender_ = nullptr;
  LegCipher::Sealed given_;  // the packet that was handed to the sender
  size_t given_octets_ = 0;  // of its payload, in clear
  uint64_t given_at_ = 0;    // the sender's count of flushes at that time

  bool negotiated_ = false;
  std::unique_ptr<LegCipher> cipher_;  // none while the stream is in clear
  Negotiated agreed_;
  Latch latch_;

  RtpSource source_;
  TelephoneEvent event_;
  InbandKeys inband_;
  KeySender keys_;
  uint32_t event_timestamp_ = 0;  // of the key that is being sent
  bool media_started_ = false;
  bool timed_out_ = false;
  int64_t heard_us_ = 0;
  int64_t packet_us_ = 0;  // when the last packet came; 0: none ever
  int64_t audio_us_ = 0;   // the last of 20 ms of audio
  Leg* relayed_to_ = nullptr;
  const int64_t media_timeout_us_;

  Relay relay_;
  Encoder encoder_;
  const uint32_t ssrc_;
  uint16_t sequence_;
  uint32_t timestamp_;  // of the first unit in `pending_`
  bool marker_ = true;
  bool speaking_ = false;
  size_t pending_ = 0;
  uint32_t sent_ = 0;
  uint32_t sent_octets_ = 0;
  uint32_t forged_before_ = 0;  // dropped by ciphers that the stream no longer has
  uint32_t replayed_before_ = 0;

  RtcpSession rtcp_;

  uint8_t packet_[rtp_header_bytes + pending_max] = {};
  std::optional<Playout> playout_;  // in the leg itself, so that where it lies is known before the leg is looked at
};

}  // namespace sidetone
