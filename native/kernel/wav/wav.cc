#include "kernel/wav/wav.h"

#include <cmath>
#include <cstring>

#include "kernel/codec/g711.h"

namespace sidetone {
namespace {

uint16_t le16(const uint8_t* at) { return static_cast<uint16_t>(at[0] | at[1] << 8); }
uint32_t le32(const uint8_t* at) { return static_cast<uint32_t>(le16(at)) | static_cast<uint32_t>(le16(at + 2)) << 16; }
bool is(const uint8_t* at, const char* id) { return std::memcmp(at, id, 4) == 0; }

float bounded(double value) {
  if (!(value == value)) return 0.0f;  // NaN
  return static_cast<float>(value > 1.0 ? 1.0 : value < -1.0 ? -1.0 : value);
}

}  // namespace

WavReader::Step WavReader::read(const uint8_t* bytes, size_t count, float* out, size_t room) {
  size_t used = 0;
  while (state_ == State::header && used < count) {
    const uint64_t rest = count - used;
    const uint64_t wanted = part_ == Part::skip ? skip_ : want_ - have_;
    const uint64_t take = wanted < rest ? wanted : rest;
    if (part_ == Part::skip) {
      skip_ -= take;
      if (skip_ == 0) next_chunk();
    } else {
      std::memcpy(held_ + have_, bytes + used, static_cast<size_t>(take));
      have_ += static_cast<uint32_t>(take);
      if (have_ == want_) part_complete();
    }
    used += static_cast<size_t>(take);
    header_bytes_ += take;
    // Chunks without contents count, too: a source may have nothing else.
    if (state_ == State::header && header_bytes_ > header_bytes_max) state_ = State::unsupported;
  }
  size_t made = 0;
  while (state_ == State::data && made < room && used < count) {
    const uint8_t* block = bytes + used;
    if (partial_ > 0 || count - used < block_bytes_) {  // a block split over two reads
      held_[partial_++] = bytes[used++];
      if (partial_ < block_bytes_) continue;
      partial_ = 0;
      block = held_;
    } else {
      used += block_bytes_;
    }
    float value = sample(block);
    if (channels_ == 2) value = (value + sample(block + sample_bytes_)) * 0.5f;
    out[made++] = value;
    if (!endless_) {
      left_ -= block_bytes_;
      if (left_ < block_bytes_) state_ = State::ended;
    }
  }
  if (state_ == State::ended || state_ == State::unsupported) used = count;  // whatever follows is not audio
  return {used, made};
}

void WavReader::next_chunk() {
  part_ = Part::chunk;
  have_ = 0;
  want_ = 8;
}

void WavReader::part_complete() {
  if (part_ == Part::riff) {
    if (!is(held_, "RIFF") || !is(held_ + 8, "WAVE")) {
      state_ = State::unsupported;
      return;
    }
    riff_size_ = le32(held_ + 4);
    next_chunk();
  } else if (part_ == Part::chunk) {
    chunk_begins();
  } else {
    parse_format();
  }
}

void WavReader::chunk_begins() {
  const uint32_t size = le32(held_ + 4);
  if (is(held_, "fmt ")) {
    if (size < 16 || size > 4096) {
      state_ = State::unsupported;
      return;
    }
    want_ = size < sizeof held_ ? size : sizeof held_;
    after_ = size - want_ + (size & 1);
    part_ = Part::format;
    have_ = 0;
    return;
  }
  if (is(held_, "data")) {
    if (kind_ == Kind::none) {
      state_ = State::unsupported;
      return;
    }
    left_ = size;
    endless_ = size > data_bytes_max || (size == 0 && (riff_size_ == 0 || riff_size_ == 0xffffffff));
    state_ = endless_ || left_ >= block_bytes_ ? State::data : State::ended;
    return;
  }
  skip_ = static_cast<uint64_t>(size) + (size & 1);
  if (skip_ > 0) part_ = Part::skip;
  else next_chunk();
}

void WavReader::parse_format() {
  uint32_t tag = le16(held_);
  channels_ = le16(held_ + 2);
  rate_hz_ = le32(held_ + 4);
  const uint32_t block = le16(held_ + 12);
  const uint32_t bits = le16(held_ + 14);
  if (tag == 0xfffe)
    tag = have_ >= 40 ? le16(held_ + 24) : 0;  // WAVE_FORMAT_EXTENSIBLE: the sub-format GUID starts with the tag
  kind_ = Kind::none;
  if (tag == 1)
    kind_ = bits == 8    ? Kind::u8
            : bits == 16 ? Kind::s16
            : bits == 24 ? Kind::s24
            : bits == 32 ? Kind::s32
                         : Kind::none;
  if (tag == 3) kind_ = bits == 32 ? Kind::f32 : bits == 64 ? Kind::f64 : Kind::none;
  if (tag == 6 && bits == 8) kind_ = Kind::alaw;
  if (tag == 7 && bits == 8) kind_ = Kind::mulaw;
  sample_bytes_ = bits / 8;
  block_bytes_ = sample_bytes_ * channels_;
  const bool sane = kind_ != Kind::none && channels_ >= 1 && channels_ <= 2 && rate_hz_ >= rate_min_hz &&
                    rate_hz_ <= rate_max_hz && block == block_bytes_;
  if (!sane) {
    state_ = State::unsupported;
    return;
  }
  skip_ = after_;
  if (skip_ > 0) part_ = Part::skip;
  else next_chunk();
}

float WavReader::sample(const uint8_t* at) const {
  switch (kind_) {
    case Kind::u8: return static_cast<float>(at[0] - 128) / 128.0f;
    case Kind::s16: return static_cast<float>(static_cast<int16_t>(le16(at))) / 32768.0f;
    case Kind::s24:
      return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(at[0]) << 8 |
                                                     static_cast<uint32_t>(at[1]) << 16 |
                                                     static_cast<uint32_t>(at[2]) << 24) >>
                                8) /
             8388608.0f;
    case Kind::s32: return static_cast<float>(static_cast<double>(static_cast<int32_t>(le32(at))) / 2147483648.0);
    case Kind::f32: {
      float value;
      std::memcpy(&value, at, sizeof value);
      return bounded(value);
    }
    case Kind::f64: {
      double value;
      std::memcpy(&value, at, sizeof value);
      return bounded(value);
    }
    case Kind::mulaw:
    case Kind::alaw: {
      int16_t value;
      if (kind_ == Kind::mulaw) {
        mulaw_decode(at, &value, 1);
      } else {
        alaw_decode(at, &value, 1);
      }
      return static_cast<float>(value) / 32768.0f;
    }
    case Kind::none: break;
  }
  return 0.0f;
}

}  // namespace sidetone
