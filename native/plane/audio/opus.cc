#include "plane/audio/opus.h"

#include <algorithm>
#include <utility>

#ifdef SIDETONE_OPUS
#include <opus.h>
#endif

namespace sidetone {

#ifdef SIDETONE_OPUS

bool opus_supported() { return true; }

size_t opus_samples(const uint8_t* packet, size_t count) {
  if (count == 0 || count > 1500) return 0;
  const int samples = ::opus_packet_get_nb_samples(packet, static_cast<opus_int32>(count), opus_rate_hz);
  return samples < static_cast<int>(opus_samples_min) || samples > static_cast<int>(opus_packet_samples_max)
             ? 0
             : static_cast<size_t>(samples);
}

namespace {

/** What the frames of a packet begin with: each layer has a bit for every 20 ms, which says whether there is a voice in
 * them, and one that tells of a copy (RFC 6716 §4.2.3). */
struct Frames {
  const uint8_t* frames[48];
  opus_int16 sizes[48];
  int count;
  size_t samples;  // of a frame
  size_t parts;    // of 20 ms of a frame
  bool is_celt;    // which has no such bits
  bool is_stereo;

  Frames(const uint8_t* packet, size_t length)
      : count(::opus_packet_parse(packet, static_cast<opus_int32>(length), nullptr, frames, sizes, nullptr)),
        samples(static_cast<size_t>(::opus_packet_get_samples_per_frame(packet, opus_rate_hz))),
        parts(std::max<size_t>(samples / opus_frame_samples, 1)),
        is_celt((packet[0] & 0x80) != 0),
        is_stereo((packet[0] & 0x04) != 0) {}
  /** A bit of both layers. */
  bool told(int frame, size_t bit) const {
    const auto is_set = [&](size_t place) { return (frames[frame][0] >> (7 - place) & 1) != 0; };
    return is_set(bit) || (is_stereo && is_set(parts + 1 + bit));
  }
};

}  // namespace

size_t opus_copied_samples(const uint8_t* packet, size_t count) {
  const Frames frames(packet, count);
  return frames.count > 0 && frames.sizes[0] > 0 && !frames.is_celt && frames.told(0, frames.parts) ? frames.samples
                                                                                                    : 0;
}

bool opus_ends_in_noise(const uint8_t* packet, size_t count) {
  const Frames frames(packet, count);
  const int last = frames.count - 1;
  if (last < 0) return false;
  return frames.sizes[last] == 0 || (!frames.is_celt && !frames.told(last, frames.parts - 1));
}

struct OpusVoiceEncoder::Library {
  OpusEncoder* encoder = nullptr;
  ~Library() {
    if (encoder != nullptr) ::opus_encoder_destroy(encoder);
  }
};

std::unique_ptr<OpusVoiceEncoder> OpusVoiceEncoder::create() {
  auto library = std::make_unique<Library>();
  int error = 0;
  library->encoder = ::opus_encoder_create(opus_rate_hz, 1, OPUS_APPLICATION_VOIP, &error);
  if (error != OPUS_OK) return nullptr;
  OpusEncoder* encoder = library->encoder;
  (void)::opus_encoder_ctl(encoder, OPUS_SET_COMPLEXITY(complexity));
  (void)::opus_encoder_ctl(encoder, OPUS_SET_INBAND_FEC(1));
  (void)::opus_encoder_ctl(encoder, OPUS_SET_PACKET_LOSS_PERC(expected_loss_percent));
  std::unique_ptr<OpusVoiceEncoder> made(new OpusVoiceEncoder(std::move(library)));
  made->limit(0);
  return made;
}

void OpusVoiceEncoder::limit(uint32_t most) {
  const uint32_t bits = most == 0 ? bits_per_second : std::min(most, bits_per_second);
  (void)::opus_encoder_ctl(library_->encoder, OPUS_SET_BITRATE(static_cast<opus_int32>(bits)));
}

size_t OpusVoiceEncoder::encode(const int16_t* pcm, uint8_t* out, size_t room, size_t samples) {
  static constexpr int16_t silence[opus_frame_samples] = {};
  // The library takes a steady tone for noise, which it would not send: only true silence is left out.
  (void)::opus_encoder_ctl(library_->encoder, OPUS_SET_DTX(pcm == nullptr ? 1 : 0));
  const opus_int32 count = ::opus_encode(library_->encoder, pcm == nullptr ? silence : pcm, static_cast<int>(samples),
                                         out, static_cast<opus_int32>(room));
  return count <= 2 ? 0 : static_cast<size_t>(count);  // one or two bytes need not be sent
}

void OpusVoiceEncoder::reset() { (void)::opus_encoder_ctl(library_->encoder, OPUS_RESET_STATE); }

struct OpusVoiceDecoder::Library {
  OpusDecoder* decoder = nullptr;
  ~Library() {
    if (decoder != nullptr) ::opus_decoder_destroy(decoder);
  }
};

std::unique_ptr<OpusVoiceDecoder> OpusVoiceDecoder::create() {
  auto library = std::make_unique<Library>();
  int error = 0;
  library->decoder = ::opus_decoder_create(opus_rate_hz, 1, &error);
  if (error != OPUS_OK) return nullptr;
  return std::unique_ptr<OpusVoiceDecoder>(new OpusVoiceDecoder(std::move(library)));
}

size_t OpusVoiceDecoder::decode(const uint8_t* packet, size_t count, int16_t* pcm) {
  const int samples = ::opus_decode(library_->decoder, packet, static_cast<opus_int32>(count), pcm,
                                    static_cast<int>(opus_packet_samples_max), 0);
  return samples < 0 ? 0 : static_cast<size_t>(samples);
}

void OpusVoiceDecoder::recover(const uint8_t* next, size_t count, int16_t* pcm, size_t samples) {
  if (::opus_decode(library_->decoder, next, static_cast<opus_int32>(count), pcm, static_cast<int>(samples), 1) < 0)
    std::fill_n(pcm, samples, int16_t{0});
}

void OpusVoiceDecoder::conceal(int16_t* pcm, size_t samples) {
  if (::opus_decode(library_->decoder, nullptr, 0, pcm, static_cast<int>(samples), 0) < 0)
    std::fill_n(pcm, samples, int16_t{0});
}

#else

struct OpusVoiceEncoder::Library {};
struct OpusVoiceDecoder::Library {};

bool opus_supported() { return false; }
size_t opus_samples(const uint8_t*, size_t) { return 0; }
size_t opus_copied_samples(const uint8_t*, size_t) { return 0; }
bool opus_ends_in_noise(const uint8_t*, size_t) { return false; }
std::unique_ptr<OpusVoiceEncoder> OpusVoiceEncoder::create() { return nullptr; }
size_t OpusVoiceEncoder::encode(const int16_t*, uint8_t*, size_t, size_t) { return 0; }
void OpusVoiceEncoder::limit(uint32_t) {}
void OpusVoiceEncoder::reset() {}
std::unique_ptr<OpusVoiceDecoder> OpusVoiceDecoder::create() { return nullptr; }
size_t OpusVoiceDecoder::decode(const uint8_t*, size_t, int16_t*) { return 0; }
void OpusVoiceDecoder::recover(const uint8_t*, size_t, int16_t* pcm, size_t samples) { conceal(pcm, samples); }
void OpusVoiceDecoder::conceal(int16_t* pcm, size_t samples) { std::fill_n(pcm, samples, int16_t{0}); }

#endif

OpusVoiceEncoder::OpusVoiceEncoder(std::unique_ptr<Library> library) : library_(std::move(library)) {}
OpusVoiceEncoder::~OpusVoiceEncoder() = default;
OpusVoiceDecoder::OpusVoiceDecoder(std::unique_ptr<Library> library) : library_(std::move(library)) {}
OpusVoiceDecoder::~OpusVoiceDecoder() = default;

}  // namespace sidetone
