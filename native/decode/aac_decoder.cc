#include "decode/aac_decoder.h"

#include <utility>

#ifdef SIDETONE_AAC
#include <algorithm>
#include <array>
#include <cstring>

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "decode/shared_library.h"
#endif

namespace sidetone {

#ifdef SIDETONE_AAC

namespace {

#define SIDETONE_TEXT_OF(value) #value
#define SIDETONE_TEXT(value) SIDETONE_TEXT_OF(value)
/** The very version that the headers describe: a later one may lay its structures out differently. */
constexpr const char* library_name = "libavcodec.so." SIDETONE_TEXT(LIBAVCODEC_VERSION_MAJOR);

/** The functions that are used, of libavcodec and of libavutil, which it brings along. */
struct Library {
  decltype(&::avcodec_find_decoder) find_decoder = nullptr;
  decltype(&::avcodec_alloc_context3) alloc_context = nullptr;
  decltype(&::avcodec_free_context) free_context = nullptr;
  decltype(&::avcodec_open2) open = nullptr;
  decltype(&::avcodec_send_packet) send_packet = nullptr;
  decltype(&::avcodec_receive_frame) receive_frame = nullptr;
  decltype(&::avcodec_flush_buffers) flush = nullptr;
  decltype(&::av_packet_alloc) alloc_packet = nullptr;
  decltype(&::av_packet_free) free_packet = nullptr;
  decltype(&::av_frame_alloc) alloc_frame = nullptr;
  decltype(&::av_frame_free) free_frame = nullptr;
  decltype(&::av_log_set_level) set_log_level = nullptr;
  const AVCodec* aac = nullptr;
};

/** The library, or null where it is not on this machine. It stays open until the process ends. */
const Library* load() {
  static Library library;
  void* handle = open_library(library_name);
  if (handle == nullptr) return nullptr;
  const bool whole = find_function(handle, "avcodec_find_decoder", library.find_decoder) &&
                     find_function(handle, "avcodec_alloc_context3", library.alloc_context) &&
                     find_function(handle, "avcodec_free_context", library.free_context) &&
                     find_function(handle, "avcodec_open2", library.open) &&
                     find_function(handle, "avcodec_send_packet", library.send_packet) &&
                     find_function(handle, "avcodec_receive_frame", library.receive_frame) &&
                     find_function(handle, "avcodec_flush_buffers", library.flush) &&
                     find_function(handle, "av_packet_alloc", library.alloc_packet) &&
                     find_function(handle, "av_packet_free", library.free_packet) &&
                     find_function(handle, "av_frame_alloc", library.alloc_frame) &&
                     find_function(handle, "av_frame_free", library.free_frame) &&
                     find_function(handle, "av_log_set_level", library.set_log_level);
  if (!whole) return nullptr;
  library.set_log_level(AV_LOG_QUIET);
  library.aac = library.find_decoder(AV_CODEC_ID_AAC);
  return library.aac == nullptr ? nullptr : &library;
}

const Library* library() {
  static const Library* const loaded = load();
  return loaded;
}

/** Channels beyond those that a mean is taken of have no place in a telephone call either. */
constexpr int channels_max = 8;

}  // namespace

struct AacDecoder::State {
  AVCodecContext* context = nullptr;
  AVPacket* packet = nullptr;
  AVFrame* frame = nullptr;
  /** The library reads some bytes beyond the end of what it is given. */
  std::array<uint8_t, frame_max_bytes + AV_INPUT_BUFFER_PADDING_SIZE> padded{};

  ~State() {
    library()->free_frame(&frame);
    library()->free_packet(&packet);
    library()->free_context(&context);
  }

  /** Appends the frame that the library made to `out` as mono. False where it is none that is read. */
  bool append(float* out, Sound& sound) const {
    const int channels = context->ch_layout.nb_channels;
    const auto count = static_cast<size_t>(std::max(0, frame->nb_samples));
    if (frame->format != AV_SAMPLE_FMT_FLTP || channels < 1 || channels > channels_max || frame->sample_rate <= 0 ||
        sound.samples + count > frame_max_samples)
      return false;
    sound.hz = static_cast<uint32_t>(frame->sample_rate);
    float* to = out + sound.samples;
    std::fill(to, to + count, 0.0f);
    for (int channel = 0; channel < channels; channel++) {
      const auto* from = reinterpret_cast<const float*>(frame->extended_data[channel]);
      for (size_t i = 0; i < count; i++) to[i] += from[i] / static_cast<float>(channels);
    }
    sound.samples += count;
    return true;
  }
};

bool AacDecoder::available() { return library() != nullptr; }

std::unique_ptr<AacDecoder> AacDecoder::open() {
  const Library* found = library();
  if (found == nullptr) return nullptr;
  auto state = std::make_unique<State>();
  state->context = found->alloc_context(found->aac);
  state->packet = found->alloc_packet();
  state->frame = found->alloc_frame();
  if (state->context == nullptr || state->packet == nullptr || state->frame == nullptr) return nullptr;
  state->context->thread_count = 1;
  if (found->open(state->context, found->aac, nullptr) != 0) return nullptr;
  return std::unique_ptr<AacDecoder>(new AacDecoder(std::move(state)));
}

AacDecoder::Sound AacDecoder::decode(const uint8_t* frame, size_t bytes, float* out) {
  Sound sound;
  if (bytes == 0 || bytes > frame_max_bytes) return {0, 0, true};
  std::memcpy(state_->padded.data(), frame, bytes);
  std::memset(state_->padded.data() + bytes, 0, AV_INPUT_BUFFER_PADDING_SIZE);
  state_->packet->data = state_->padded.data();
  state_->packet->size = static_cast<int>(bytes);
  if (library()->send_packet(state_->context, state_->packet) < 0) {
    library()->flush(state_->context);
    return {0, 0, true};
  }
  // A packet gives a frame; the bound is for a library that would not stop.
  for (int frames = 0; frames < 4 && library()->receive_frame(state_->context, state_->frame) == 0; frames++) {
    if (!state_->append(out, sound)) return {0, 0, true};
  }
  return sound;
}

#else

struct AacDecoder::State {};

bool AacDecoder::available() { return false; }

std::unique_ptr<AacDecoder> AacDecoder::open() { return nullptr; }

AacDecoder::Sound AacDecoder::decode(const uint8_t*, size_t, float*) { return {0, 0, true}; }

#endif

AacDecoder::AacDecoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
AacDecoder::~AacDecoder() = default;

}  // namespace sidetone
