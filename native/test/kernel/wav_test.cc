#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernel/wav/wav.h"
#include "test/check.h"

using namespace sidetone;

namespace {

using Bytes = std::vector<uint8_t>;

void put(Bytes& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void text(Bytes& out, const char* id) { out.insert(out.end(), id, id + std::strlen(id)); }

struct Format {
  uint32_t tag;
  uint32_t bits;
  uint32_t channels = 1;
  uint32_t rate = 8000;
  bool extensible = false;
};

Bytes format_chunk(const Format& format) {
  Bytes out;
  text(out, "fmt ");
  put(out, format.extensible ? 40 : 16, 4);
  put(out, format.extensible ? 0xfffe : format.tag, 2);
  put(out, format.channels, 2);
  put(out, format.rate, 4);
  put(out, format.rate * format.channels * format.bits / 8, 4);
  put(out, format.channels * format.bits / 8, 2);
  put(out, format.bits, 2);
  if (format.extensible) {
    put(out, 22, 2);
    put(out, format.bits, 2);
    put(out, 4, 4);
    put(out, format.tag, 2);
    const uint8_t guid[14] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
    out.insert(out.end(), guid, guid + 14);
  }
  return out;
}

Bytes file(const Format& format, const Bytes& data, const Bytes& before_data = {}) {
  Bytes out;
  text(out, "RIFF");
  put(out, 0, 4);
  text(out, "WAVE");
  const Bytes chunk = format_chunk(format);
  out.insert(out.end(), chunk.begin(), chunk.end());
  out.insert(out.end(), before_data.begin(), before_data.end());
  text(out, "data");
  put(out, data.size(), 4);
  out.insert(out.end(), data.begin(), data.end());
  const uint32_t size = static_cast<uint32_t>(out.size() - 8);
  std::memcpy(&out[4], &size, 4);
  return out;
}

std::vector<float> decode(const Bytes& bytes, size_t step, size_t room, WavReader& reader) {
  std::vector<float> all;
  std::vector<float> out(room);
  for (size_t at = 0; at < bytes.size();) {
    const size_t count = bytes.size() - at < step ? bytes.size() - at : step;
    size_t used = 0;
    while (true) {
      const WavReader::Step made = reader.read(&bytes[at] + used, count - used, out.data(), room);
      used += made.consumed;
      all.insert(all.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(made.made));
      if (made.consumed == 0 && made.made == 0) break;
    }
    if (used == 0) break;
    at += used;
  }
  return all;
}

}  // namespace

TEST("every sample format decodes to the same wave, plain and extensible, in pieces of any size") {
  struct Row {
    Format format;
    Bytes half;  // one sample of +0.5
    float tolerance;
  };
  const float f = 0.5f;
  const double d = 0.5;
  Bytes f32(4);
  Bytes f64(8);
  std::memcpy(f32.data(), &f, 4);
  std::memcpy(f64.data(), &d, 8);
  const Row rows[] = {
      {{1, 8}, {192}, 0}, {{1, 16}, {0, 0x40}, 0}, {{1, 24}, {0, 0, 0x40}, 0}, {{1, 32}, {0, 0, 0, 0x40}, 0},
      {{3, 32}, f32, 0},  {{3, 64}, f64, 0},       {{6, 8}, {0xa5}, 0.02f},    {{7, 8}, {0x8f}, 0.02f},
  };
  for (Row row : rows) {
    for (const bool extensible : {false, true}) {
      for (const uint32_t channels : {1u, 2u}) {
        row.format.extensible = extensible;
        row.format.channels = channels;
        Bytes data;
        for (uint32_t i = 0; i < 7 * channels; i++) data.insert(data.end(), row.half.begin(), row.half.end());
        const Bytes bytes = file(row.format, data);
        for (const size_t step : {size_t{1}, size_t{3}, size_t{1000}}) {
          WavReader reader;
          const std::vector<float> out = decode(bytes, step, 2, reader);
          CHECK(out.size() == 7);
          for (const float sample : out) CHECK(sample >= 0.5f - row.tolerance && sample <= 0.5f + row.tolerance);
          CHECK(reader.state() == WavReader::State::ended);
          CHECK(!reader.incomplete());
        }
      }
    }
  }
}

TEST("chunks before the data are skipped, those of odd length with their pad") {
  Bytes list;
  text(list, "LIST");
  put(list, 5, 4);
  text(list, "INFOx");
  list.push_back(0);
  text(list, "bext");
  put(list, 0, 4);
  WavReader reader;
  const std::vector<float> out = decode(file({1, 16}, {0, 0x40, 0, 0xc0}, list), 1, 8, reader);
  CHECK(out.size() == 2 && out[0] == 0.5f && out[1] == -0.5f);
}

TEST("a chunk after the data is not audio") {
  Bytes bytes = file({1, 16}, {0, 0x40});
  text(bytes, "LIST");
  put(bytes, 4, 4);
  text(bytes, "abcd");
  WavReader reader;
  CHECK(decode(bytes, 5, 8, reader).size() == 1);
}

TEST("a stream of unknown length plays to its end, a file cut short says so") {
  Bytes endless = file({1, 16}, {0, 0x40, 0, 0x40});
  std::memset(&endless[40], 0xff, 4);
  WavReader reader;
  CHECK(decode(endless, 100, 8, reader).size() == 2);
  CHECK(!reader.incomplete());

  Bytes cut = file({1, 16}, {0, 0x40, 0, 0x40});
  cut.resize(cut.size() - 1);
  WavReader second;
  CHECK(decode(cut, 100, 8, second).size() == 1);
  CHECK(second.incomplete());
}

TEST("stereo is averaged, floats are bounded, and NaN is silence") {
  WavReader stereo;
  const std::vector<float> mono = decode(file({1, 16, 2}, {0, 0x40, 0, 0xc0}), 100, 8, stereo);
  CHECK(mono.size() == 1 && mono[0] == 0.0f);
  const float wild[3] = {5.0f, -5.0f, __builtin_nanf("")};
  Bytes data(12);
  std::memcpy(data.data(), wild, 12);
  WavReader reader;
  const std::vector<float> out = decode(file({3, 32}, data), 100, 8, reader);
  CHECK(out.size() == 3 && out[0] == 1.0f && out[1] == -1.0f && out[2] == 0.0f);
}

TEST("what is not a WAV of a known kind is refused") {
  const Format bad[] = {{2, 4}, {1, 12}, {1, 16, 0}, {1, 16, 3}, {1, 16, 1, 0}, {3, 16}, {6, 16}, {0x55, 16}};
  for (const Format& format : bad) {
    WavReader reader;
    decode(file(format, {0, 0}), 100, 8, reader);
    CHECK(reader.state() == WavReader::State::unsupported);
  }
  WavReader html;
  const char* page = "<!doctype html><html>";
  decode(Bytes(page, page + std::strlen(page)), 100, 8, html);
  CHECK(html.state() == WavReader::State::unsupported);
  Bytes data_first;
  text(data_first, "RIFF....WAVEdata");
  put(data_first, 4, 4);
  WavReader early;
  decode(data_first, 100, 8, early);
  CHECK(early.state() == WavReader::State::unsupported);
}

TEST("a source that has nothing but chunks without audio is refused after a megabyte, however small they are") {
  for (const size_t size : {0, 1, 4, 4096}) {
    Bytes chunk;
    text(chunk, "JUNK");
    put(chunk, size, 4);
    chunk.resize(chunk.size() + size + size % 2);
    Bytes all = file({1, 16}, {}, chunk);
    all.resize(all.size() - 8);  // no data follows
    WavReader reader;
    decode(all, 4096, 8, reader);
    size_t given = all.size();
    while (reader.state() == WavReader::State::header && given < 2 * WavReader::header_bytes_max) {
      decode(chunk, 4096, 8, reader);
      given += chunk.size();
    }
    CHECK(reader.state() == WavReader::State::unsupported);
    CHECK(given > WavReader::header_bytes_max && given <= WavReader::header_bytes_max + chunk.size());
  }
}

TEST("a stream that names no length, or none of its chunks, plays to its end; an empty file has none") {
  const auto samples = [](uint32_t riff, uint32_t data) {
    Bytes bytes = file({1, 16}, {0, 0x40, 0, 0x40});
    std::memcpy(&bytes[4], &riff, 4);
    std::memcpy(&bytes[40], &data, 4);
    WavReader reader;
    return decode(bytes, 100, 8, reader).size();
  };
  CHECK(samples(0, 0) == 2 && samples(0xffffffff, 0) == 2 && samples(0, 0xffffffff) == 2 &&
        samples(40, 0x7ffff001) == 2);
  CHECK(samples(36, 0) == 0 && samples(38, 2) == 1 && samples(37, 1) == 0);
}

TEST("a format chunk is read whatever follows its fields, and refused where they contradict each other") {
  const auto state = [](size_t size, uint32_t block, uint32_t rate) {
    Bytes bytes;
    text(bytes, "RIFF");
    put(bytes, 0, 4);
    text(bytes, "WAVEfmt ");
    put(bytes, size, 4);
    put(bytes, 1, 2);
    put(bytes, 1, 2);
    put(bytes, rate, 4);
    put(bytes, rate * 2, 4);
    put(bytes, block, 2);
    put(bytes, 16, 2);
    bytes.resize(20 + size + size % 2);
    text(bytes, "data");
    put(bytes, 2, 4);
    put(bytes, 0x4000, 2);
    WavReader reader;
    const std::vector<float> out = decode(bytes, 7, 8, reader);
    return reader.state() == WavReader::State::ended && out.size() == 1 && out[0] == 0.5f;
  };
  for (const size_t size : {16, 17, 18, 39, 40, 41, 42, 4095, 4096}) CHECK(state(size, 2, 8000));
  CHECK(!state(4097, 2, 8000) && !state(16, 4, 8000) && !state(16, 1, 8000));
  CHECK(state(16, 2, 1000) && state(16, 2, 384'000) && !state(16, 2, 999) && !state(16, 2, 384'001));
  Bytes other = file({1, 16}, {0, 0x40});
  for (const size_t at : {0, 8}) {  // RIFX, or a RIFF of another form
    Bytes bytes = other;
    bytes[at + 3] = 'X';
    WavReader reader;
    CHECK(decode(bytes, 100, 8, reader).empty() && reader.state() == WavReader::State::unsupported);
  }
}
