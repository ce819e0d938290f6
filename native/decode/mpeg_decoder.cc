#include "decode/mpeg_decoder.h"

#include <utility>

#ifdef SIDETONE_MPEG
#include <mpg123.h>

#include "decode/shared_library.h"
#endif

namespace sidetone {

#ifdef SIDETONE_MPEG

namespace {

/** The name of the interface, which has been the same since 2007. */
constexpr const char* library_name = "libmpg123.so.0";
constexpr int channels_max = 2;
/** Reads in a row that give no sound, after which the library is taken to stumble without end. */
constexpr int silent_reads_max = 16;

/** The functions that are used. */
struct Library {
  decltype(&::mpg123_init) init = nullptr;
  decltype(&::mpg123_new) create = nullptr;
  decltype(&::mpg123_delete) destroy = nullptr;
  decltype(&::mpg123_param) set = nullptr;
  decltype(&::mpg123_open_feed) open_feed = nullptr;
  decltype(&::mpg123_feed) feed = nullptr;
  decltype(&::mpg123_read) read = nullptr;
  decltype(&::mpg123_getformat) format = nullptr;
};

/** The library, or null where it is not on this machine. It stays open until the process ends. */
const Library* load() {
  static Library library;
  void* handle = open_library(library_name);
  if (handle == nullptr) return nullptr;
  const bool whole =
      find_function(handle, "mpg123_init", library.init) && find_function(handle, "mpg123_new", library.create) &&
      find_function(handle, "mpg123_delete", library.destroy) && find_function(handle, "mpg123_param", library.set) &&
      find_function(handle, "mpg123_open_feed", library.open_feed) &&
      find_function(handle, "mpg123_feed", library.feed) && find_function(handle, "mpg123_read", library.read) &&
      find_function(handle, "mpg123_getformat", library.format);
  return whole && library.init() == MPG123_OK ? &library : nullptr;
}

const Library* library() {
  static const Library* const loaded = load();
  return loaded;
}

}  // namespace

struct MpegDecoder::State {
  mpg123_handle* handle = nullptr;
  uint32_t hz = 0;
  int channels = 0;

  ~State() { library()->destroy(handle); }

  /** Learns rate and channels, which are about to change. False where they are none that are read. */
  bool learn() {
    long rate = 0;
    int encoding = 0;
    if (library()->format(handle, &rate, &channels, &encoding) != MPG123_OK) return false;
    hz = rate > 0 ? static_cast<uint32_t>(rate) : 0;
    return hz > 0 && channels >= 1 && channels <= channels_max && encoding == MPG123_ENC_FLOAT_32;
  }

  /** Writes the mean of the channels to `out`; returns how many samples there are. */
  size_t mean(const float* interleaved, size_t values, float* out) const {
    if (channels == 0) return 0;
    const size_t samples = values / static_cast<size_t>(channels);
    for (size_t i = 0; i < samples; i++)
      out[i] = channels == 1 ? interleaved[i] : (interleaved[2 * i] + interleaved[2 * i + 1]) / 2;
    return samples;
  }
};

bool MpegDecoder::available() { return library() != nullptr; }

std::unique_ptr<MpegDecoder> MpegDecoder::open() {
  const Library* found = library();
  if (found == nullptr) return nullptr;
  auto state = std::make_unique<State>();
  state->handle = found->create(nullptr, nullptr);
  if (state->handle == nullptr) return nullptr;
  const bool opened =
      found->set(state->handle, MPG123_ADD_FLAGS, MPG123_FORCE_FLOAT | MPG123_GAPLESS | MPG123_QUIET, 0) == MPG123_OK &&
      found->open_feed(state->handle) == MPG123_OK;
  return opened ? std::unique_ptr<MpegDecoder>(new MpegDecoder(std::move(state))) : nullptr;
}

MpegDecoder::Sound MpegDecoder::decode(const uint8_t* bytes, size_t count, float* out) {
  Sound sound;
  State& state = *state_;
  if (count > 0 && library()->feed(state.handle, bytes, count) != MPG123_OK) return {0, 0, false, true};
  float interleaved[sound_max_samples * channels_max];
  const size_t room = sound_max_samples * sizeof(float);
  for (int reads = 0; reads <= silent_reads_max; reads++) {
    size_t bytes_made = 0;
    sound.hz = state.hz;
    const int result = library()->read(state.handle, reinterpret_cast<unsigned char*>(interleaved),
                                       state.channels == 2 ? 2 * room : room, &bytes_made);
    sound.samples = state.mean(interleaved, bytes_made / sizeof(float), out);
    if (result == MPG123_NEW_FORMAT && !state.learn()) break;
    // Sound of another rate begins a call of its own.
    sound.more = result != MPG123_NEED_MORE;
    if (sound.samples > 0 || !sound.more) return sound;
  }
  return {0, 0, false, true};
}

#else

struct MpegDecoder::State {};

bool MpegDecoder::available() { return false; }

std::unique_ptr<MpegDecoder> MpegDecoder::open() { return nullptr; }

MpegDecoder::Sound MpegDecoder::decode(const uint8_t*, size_t, float*) { return {0, 0, false, true}; }

#endif

MpegDecoder::MpegDecoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
MpegDecoder::~MpegDecoder() = default;

}  // namespace sidetone
