// Keys as they leave a leg: the packets of telephone-event (RFC 4733 §2.5) among those of the audio, or tones in it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernel/codec/g711.h"
#include "kernel/tone/tone.h"
#include "plane/leg/key_sender.h"
#include "test/check.h"
#include "test/plane/bench.h"

using namespace sidetone;
using namespace sidetone::test;

namespace {

/** A packet that came to the far end, and in which tick. */
struct Sent {
  int tick;
  bool marker;
  bool event;
  uint16_t sequence;
  uint32_t timestamp;
  std::vector<uint8_t> payload;
};

std::vector<Sent> run(Bench& bench, FarEnd& far, int ticks) {
  std::vector<Sent> all;
  for (int tick = 0; tick < ticks; tick++) {
    bench.tick();
    for (const auto& bytes : far.packets()) {
      RtpPacket packet;
      if (!rtp_parse(bytes.data(), bytes.size(), packet)) continue;
      all.push_back({tick,
                     packet.marker,
                     packet.payload_type == 101,
                     packet.sequence,
                     packet.timestamp,
                     {packet.payload, packet.payload + packet.payload_bytes}});
    }
  }
  return all;
}

}  // namespace

TEST("a key is sent at one timestamp, grows by 20 ms a packet, and its end goes three times") {
  Bench bench;
  FarEnd* far = bench.open(Codec::pcmu, true);
  CHECK(far != nullptr);
  const auto before = run(bench, *far, 5);
  CHECK(before.size() == 5 && before[0].marker && !before[4].marker);
  CHECK(bench.plane->send_keys(1, 3, "#", 90, 60));
  const auto sent = run(bench, *far, 10);
  // Five ticks of the key, of which the last goes three times, then five of audio.
  CHECK(sent.size() == 12);
  const uint32_t began = before[4].timestamp + 160;
  for (size_t i = 0; i < sent.size(); i++) {
    CHECK(sent[i].event == (i < 7));
    CHECK(sent[i].sequence == static_cast<uint16_t>(before[4].sequence + 1 + i));  // each packet has its own number
    CHECK(sent[i].marker == (i == 0));
    if (i >= 7) {
      CHECK(sent[i].timestamp == began + 160 * (i - 2) && sent[i].payload.size() == 160);
      continue;
    }
    const uint16_t units = i < 4 ? static_cast<uint16_t>(160 * (i + 1)) : uint16_t{720};
    const std::vector<uint8_t> payload = {11, static_cast<uint8_t>(i < 4 ? 10 : 0x80 | 10),
                                          static_cast<uint8_t>(units >> 8), static_cast<uint8_t>(units)};
    CHECK(sent[i].tick == static_cast<int>(std::min<size_t>(i, 4)));
    CHECK(sent[i].timestamp == began && sent[i].payload == payload);
  }
  const auto told = bench.notices();
  CHECK(std::count_if(told.begin(), told.end(), [](const Notice& notice) {
          return notice.kind == NoticeKind::keys_sent && notice.leg == 1 && notice.a == 3;
        }) == 1);
  Counters counters;
  CHECK(bench.plane->counters(1, counters) && counters.sent == 17);
}

TEST("the key after another begins at its own timestamp, and audio goes on at the time it would have had") {
  for (const Codec codec : {Codec::pcmu, Codec::opus}) {
    if (codec == Codec::opus && !opus_supported()) continue;
    Bench bench;
    FarEnd* far = bench.open(codec, true);
    CHECK(far != nullptr);
    const uint32_t frame = far->frame_clock;
    CHECK(bench.plane->send_keys(1, 1, "12", 40, 40));
    const auto sent = run(bench, *far, 12);
    std::vector<Sent> keys;
    std::copy_if(sent.begin(), sent.end(), std::back_inserter(keys), [](const Sent& one) { return one.event; });
    CHECK(keys.size() == 8);
    for (size_t i = 0; i < 4; i++) {
      CHECK(keys[i].payload[0] == 1 && keys[i].timestamp == keys[0].timestamp && keys[i].marker == (i == 0));
      CHECK(keys[i + 4].payload[0] == 2 && keys[i + 4].timestamp == keys[0].timestamp + 4 * frame);
      CHECK(keys[i + 4].marker == (i == 0));
      const uint32_t units = static_cast<uint32_t>(keys[i].payload[2] << 8 | keys[i].payload[3]);
      CHECK(units == (i == 0 ? frame : 2 * frame));
    }
    for (const Sent& one : sent) {
      if (one.event) continue;
      CHECK(one.timestamp == keys[0].timestamp + static_cast<uint32_t>(one.tick) * frame);
    }
  }
}

TEST("a key that interrupts packets of 60 ms leaves no audio of before it to come after it") {
  Bench bench;
  FarEnd* far = bench.open(Codec::pcmu, true);
  CHECK(far != nullptr);
  Negotiated agreed;
  agreed.rtp = far->here();
  agreed.rtcp = nowhere();
  agreed.event_payload_type = 101;
  agreed.ptime_ms = 60;
  CHECK(bench.plane->negotiate(1, agreed, bench.now));
  const auto before = run(bench, *far, 4);  // a packet, and a third of one
  CHECK(before.size() == 1 && before[0].payload.size() == 480);
  CHECK(bench.plane->send_keys(1, 1, "5", 40, 40));
  const auto sent = run(bench, *far, 7);
  CHECK(sent.size() == 5 && sent[3].event && !sent[4].event);
  CHECK(sent[0].timestamp == before[0].timestamp + 480 + 160);
  CHECK(sent[4].timestamp == sent[0].timestamp + 2 * 160 && sent[4].payload.size() == 480);
}

TEST("keys are tones in the audio where no telephone-event was agreed, and held back while the far end is on hold") {
  for (const bool held : {false, true}) {
    Bench bench;
    FarEnd* far = bench.open(Codec::pcmu, false);
    CHECK(far != nullptr);
    Negotiated agreed;
    agreed.rtp = far->here();
    agreed.rtcp = nowhere();
    agreed.send = !held;
    CHECK(bench.plane->negotiate(1, agreed, bench.now));
    CHECK(bench.plane->send_keys(1, 1, "4D", 80, 80));
    ToneDetector detector(8000);
    std::string keys;
    for (int round = 0; round < 2; round++) {
      for (const Sent& one : run(bench, *far, 30)) {
        int16_t pcm[frame_units];
        CHECK(one.payload.size() == frame_units);
        mulaw_decode(one.payload.data(), pcm, frame_units);
        ToneDetector::Key key;
        if (detector.process(pcm, frame_units, key)) keys += key.key;
      }
      CHECK(keys == (held && round == 0 ? "" : "4D"));
      agreed.send = true;
      CHECK(bench.plane->negotiate(1, agreed, bench.now));
    }
  }
}

TEST("a tone in the audio is not cut off at its end, and is over 5 ms after it") {
  Bench bench;
  FarEnd* far = bench.open(Codec::pcmu, false);
  CHECK(far != nullptr && bench.plane->send_keys(1, 1, "1", 100, 60));
  std::vector<int16_t> heard;
  for (const Sent& one : run(bench, *far, 8)) {
    int16_t pcm[frame_units];
    mulaw_decode(one.payload.data(), pcm, frame_units);
    heard.insert(heard.end(), pcm, pcm + frame_units);
  }
  CHECK(heard.size() == 8 * frame_units);
  const auto end = heard.begin() + 800;
  CHECK(std::any_of(end, end + 20, [](int16_t sample) { return std::abs(sample) > 5000; }));
  CHECK(std::all_of(end + 40, heard.end(), [](int16_t sample) { return sample == 0; }));
}

TEST("a tone falls after its key and other sound beside it, so that neither is cut off, and nothing else is changed") {
  for (const uint32_t sound_ms : {40u, 45u, 70u, 100u}) {
    for (const int16_t beside : {int16_t{0}, int16_t{8000}}) {
      KeySender sender;
      CHECK(sender.add(1, "1", sound_ms, 60));
      std::vector<int16_t> heard;
      for (int tick = 0; tick < 8; tick++) {
        std::vector<int16_t> pcm(frame_units, beside);
        const KeySender::Step step = sender.next();
        if (step.tone != 0) KeySender::tones(step, pcm.data(), pcm.size());
        heard.insert(heard.end(), pcm.begin(), pcm.end());
      }
      // The tone of 1 by itself is what goes on over the end of it.
      KeySender::Step whole;
      whole.tone = '1';
      whole.sound_ms = 1000;
      std::vector<int16_t> tone(heard.size(), 0);
      KeySender::tones(whole, tone.data(), frame_units);
      for (whole.from_ms = 20; whole.from_ms < 160; whole.from_ms += 20)
        KeySender::tones(whole, tone.data() + whole.from_ms * 8, frame_units);
      const size_t end = sound_ms * 8, ramp = 40;
      for (size_t i = 0; i < heard.size(); i++) {
        const double fallen = i < end ? 0 : std::min(1.0, static_cast<double>(i - end) / ramp);
        const double left = i < ramp ? 1 - static_cast<double>(i) / ramp : fallen;
        CHECK(std::abs(heard[i] - (tone[i] * (1 - fallen) + beside * left)) <= 2);
      }
    }
  }
}
