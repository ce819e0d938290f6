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
#include "plane/audio/opus.h"
#include "plane/cache.h"
#include "plane/io/port.h"
#include "plane/io/rtp_endpoint.h"
#include "plane/io/sender.h"
#include "plane/leg/inband_keys.h"
#include "plane/leg/key_sender.h"
#include "plane/leg/latch.h"
#include "plane/leg/other_payload.h"
#include "plane/leg/playout.h"
#include "plane/leg/relay.h"
#include "plane/notice.h"
#include "plane/participant.h"
#include "plane/rtp/event_source.h"
#include "plane/rtp/rtcp_session.h"
#include "plane/rtp/rtp.h"
#include "plane/rtp/rtp_source.h"
#include "plane/rtp/telephone_event.h"
#include "plane/srtp/leg_cipher.h"
#include "plane/webrtc/webrtc_port.h"

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
  uint32_t event_clock_hz = 8000;  // of telephone-event; some have 8000 beside Opus
  int32_t own_payload_type = -1;   // by which the far end may send as well
  int32_t own_event_payload_type = -1;
  uint32_t ptime_ms = 20;
  int32_t first_sequence = -1;  // of the leg's first packet; -1: at random, as its timestamp is then
  uint32_t first_timestamp = 0;
  uint32_t max_bitrate = 0;  // that the far end takes of Opus on average; 0: it has not said
  bool send = true;
  bool receive = true;
  bool ringing = false;  // the call is not answered yet: nobody misses its audio
  bool holding = false;  // we hold the far end, which may hold us as well: it neither hears its room nor is heard there

  /** Whether the far end is heard: neither do we hold it, nor does it send nothing. */
  bool hears() const { return receive && !holding; }
  /** Whether a silence of the far end is to be told. */
  bool awaits_audio() const { return receive && !ringing; }
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
  ~Leg() override;

  /** The sockets of the leg, which a linked one has not. */
  PortPair& ports() { return ports_; }
  int rtp_fd() const override { return port_ ? port_->fd() : ports_.rtp(); }
  /** Makes it a WebRTC leg, which goes by the socket of `port` and says nothing in clear. Before all else. */
  void link(std::shared_ptr<WebrtcPort> port, std::shared_ptr<WebrtcLink> link);
  /** The port of a WebRTC leg, or nullptr. */
  WebrtcPort* port() const { return port_.get(); }
  /** Begins an ICE restart of a WebRTC leg: the far end may move by these credentials. */
  void restart_ice(IceCredentials own) {
    if (port_) port_->restart_link(link_, std::move(own));
  }
  /** Takes what has come by the link since the last tick. */
  void drain_link(LinkPackets& packets, const Now& now, Notices& notices);
  uint32_t ssrc() const { return ssrc_; }
  /** Makes the leg one end of a pipe between two nodes: it sends as `own`, hears nobody but `theirs`, and tells 300 ms
   * without a packet instead of a media timeout. `at_once`: packets are passed on to it and from it without a wait.
   *
   * A marker in a pipe says that the timeline begins anew, where packets that are passed on and frames of our own take
   * turns. Packets have a place of their own between the ticks, and each turn numbers them as if they had waited for
   * the tick. The other end would keep what lies between, up to 20 ms at each turn, as delay for seconds. */
  void pipe(uint32_t own, uint32_t theirs, bool at_once);
  /** Whether packets of a bridge of two are passed on from the first tick that permits it. */
  bool passes_at_once() const { return pipe_at_once_; }

  /** Applies an offer or answer. Without `keys` the stream is in clear. */
  void negotiate(const Negotiated& parameters, const Now& now, const SrtpKeys* keys = nullptr);
  /** Whether we hold the far end. */
  bool holding() const { return agreed_.holding; }
  uint32_t rate_hz() const override { return codec_rate_hz(agreed_.codec); }
  Leg* rtp() override { return this; }

  void fetch() const override {
    cache_fetch(this, 128);
    cache_fetch(&ports_, reinterpret_cast<const char*>(&inband_) + 64 - reinterpret_cast<const char*>(&ports_));
    cache_fetch(&playout_, Playout::touched_bytes);
    __builtin_prefetch(reinterpret_cast<const char*>(&playout_ + 1) - 1);  // tells whether there is one
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
  /** How long packets may stay away from the bridge to that leg before it is given frames again. */
  int64_t patience_us(const Leg& to) const {
    return pipe_at_once_ || to.pipe_at_once_ ? Relay::pipe_patience_us : Relay::silent_us;
  }
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
  void follow_link(Notices& notices);
  /** The address that audio goes to. */
  const Address& remote() const { return link_ ? link_remote_ : latch_.remote(); }
  /** Whether what leaves or comes now would be in clear although the leg never is. */
  bool keyless() const { return link_ != nullptr && !cipher_; }
  void encrypt(const SrtpKeys* keys);
  void rest_cipher();
  bool belongs(const RtpPacket& packet, bool event);
  Reception::Verdict counted(const RtpPacket& packet, bool event);
  bool brings_event(const RtpPacket& packet, bool of_audio);
  int64_t arrival_us(const Datagram& datagram, const Now& now) const;
  void pass_on(const RtpPacket& packet, Codec codec, const Now& now);
  const Address* destination();
  bool send(const uint8_t* bytes, size_t count);
  void failed(int error);
  bool hand_over(size_t count);
  bool send_now(const uint8_t* bytes, size_t count);
  void take_back();
  void attention(bool wanted) override;
  void count_late();
  void restart_playout();
  void tone(const ToneDetector::Key& key, const Now& now, Notices& notices) override;
  void tell(const Digit& digit, const Now& now, Notices& notices);
  void press(char key, bool inband, const Now& now, Notices& notices);
  void watch_tone(const Now& now, Notices& notices);
  bool recordable(const Now& now, bool hears_something) const override;
  void resume_own_frames(int16_t* pcm, const Now& now);
  void send_frame(const Now& now, Notices& notices);
  void send_packet(size_t units);
  size_t encode_packet(const int16_t* pcm, size_t units, uint8_t* out);
  void send_coded(const int16_t* pcm);
  /** Units of 125 us on the RTP clock of the codec. */
  uint32_t clock(size_t units) const { return static_cast<uint32_t>(units) * codec_clock_scale(agreed_.codec); }
  void send_event(const KeySender::Step& step);
  void send_report(const Now& now, bool bye);
  /**
   * The address that reports go to: the one in SDP, or, while the audio comes from another one (NAT), the one that the
   * far end's own reports come from (symmetric RTCP, RFC 4961 §4).
   */
  Address report_destination() const;

  /** A far end without a packet for so long has nothing to record. A shorter pause is loss, heard as such. */
  static constexpr int64_t interrupted_us = 500'000;
  /** A far end whose packets are passed on has sent none but those of 20 ms for so long: a relay carries no others. */
  static constexpr int64_t even_us = 10'000'000;
  /** The other end of a pipe sends every 20 ms, silence too, so that it is lost when nothing comes. */
  static constexpr int64_t pipe_silent_us = 300'000;
  static constexpr size_t pending_max = 1024;
  static_assert(codec_samples(Codec::l16_24k, frame_units) * l16_sample_bytes <= pending_max, "a packet of L16 fits");

  // What every packet and tick touches lies together, from here to `inband_`.
  PortPair ports_;
  std::shared_ptr<WebrtcPort> port_;  // of a WebRTC leg, with its link
  std::shared_ptr<WebrtcLink> link_;
  Address link_remote_;
  uint32_t link_version_ = 0;
  LinkState link_state_ = LinkState::checking;
  Sender* sender_ = nullptr;
  LegCipher::Sealed given_;  // the packet that was handed to the sender
  size_t given_octets_ = 0;  // of its payload, in clear
  uint64_t given_at_ = 0;    // the sender's count of flushes at that time

  bool negotiated_ = false;
  std::unique_ptr<LegCipher> cipher_;  // none while the stream is in clear
  Negotiated agreed_;
  Latch latch_;

  RtpSource source_;
  bool spoke_ = false;  // audio came of the source that is heard
  EventSource event_source_;
  TelephoneEvent event_;
  OtherPayload other_;
  KeySender keys_;
  uint32_t event_timestamp_ = 0;  // of the key that is being sent
  bool media_started_ = false;
  bool timed_out_ = false;
  char pressed_ = 0;  // the key that was told to be down, until its digit or `key_up`
  int64_t heard_us_ = 0;
  int64_t packet_us_ = 0;         // when the last packet came; 0: none ever
  int64_t audio_us_ = 0;          // the last of 20 ms of audio
  int64_t uneven_us_ = -even_us;  // the last of audio of another length
  Leg* relayed_to_ = nullptr;
  const int64_t media_timeout_us_;
  bool pipe_ = false;
  bool pipe_at_once_ = false;
  uint32_t pipe_source_ = 0;  // the SSRC of the other end

  Relay relay_;
  uint32_t ssrc_;
  uint16_t sequence_;
  uint16_t reports_port_ = 0;  // of the far end's last RTCP, where it came from the host of its audio; 0: none
  uint32_t timestamp_;         // of the first unit in `pending_`
  bool marker_ = true;
  bool speaking_ = false;
  size_t pending_ = 0;
  uint32_t sent_ = 0;
  uint32_t sent_octets_ = 0;
  RtcpSession rtcp_;

  InbandKeys inband_;
  KeyRate key_rate_;
  KeyRate press_rate_;
  Encoder encoder_;
  std::unique_ptr<OpusVoiceEncoder> opus_;    // while that is the codec
  std::unique_ptr<LegCipher> cipher_before_;  // while the stream is in clear again
  uint32_t late_before_ = 0;                  // counted by playouts that are gone

  uint8_t packet_[rtp_header_bytes + pending_max] = {};
  std::optional<Playout> playout_;  // in the leg itself, so that where it lies is known before the leg is looked at
};

}  // namespace sidetone
