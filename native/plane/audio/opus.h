// Opus (RFC 6716, RFC 7587) by libopus: mono at 48 kHz. Where the addon was built without the library, `opus_supported`
// is false and no encoder or decoder is made.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace sidetone {

constexpr uint32_t opus_rate_hz = 48000;
/** Samples of 20 ms. */
constexpr size_t opus_frame_samples = 960;
/** Samples of the shortest frame, 2.5 ms. */
constexpr size_t opus_samples_min = 120;
/** Samples of the longest packet, 120 ms. */
constexpr size_t opus_packet_samples_max = 5760;

/** Whether this build can do Opus. */
bool opus_supported();
/** The samples that a packet lasts at 48 kHz, 120 to 5760. 0 for what is no packet (RFC 6716 §3.4). */
size_t opus_samples(const uint8_t* packet, size_t count);
/** The samples before a packet of which it has a copy (in-band FEC), 480 to 2880; 0: of none. */
size_t opus_copied_samples(const uint8_t* packet, size_t count);
/** Whether what a packet ends with is no voice, so that nothing may follow it for as long as that is so (DTX). */
bool opus_ends_in_noise(const uint8_t* packet, size_t count);

class OpusVoiceEncoder {
 public:
  static std::unique_ptr<OpusVoiceEncoder> create();
  ~OpusVoiceEncoder();
  OpusVoiceEncoder(const OpusVoiceEncoder&) = delete;
  OpusVoiceEncoder& operator=(const OpusVoiceEncoder&) = delete;

  /**
   * Encodes 20 ms, or another length that a frame may have, with the copy of the frame before in it (in-band FEC).
   * `pcm` is nullptr for silence. Returns the bytes of the packet, or 0 when it need not be sent (DTX).
   */
  size_t encode(const int16_t* pcm, uint8_t* out, size_t room, size_t samples = opus_frame_samples);
  /** Spends no more than `most` bits a second on average, which the far end may ask for (RFC 7587 §7.1). 0: as it
   * likes. */
  void limit(uint32_t most);
  void reset();

  static constexpr uint32_t bits_per_second = 32'000;
  /** The effort of the encoder, from 0 to 10. At 5 it costs half as much as at 10, and is told from it by nobody on a
   * call. */
  static constexpr int complexity = 5;
  static constexpr int expected_loss_percent = 5;

 private:
  struct Library;
  explicit OpusVoiceEncoder(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

class OpusVoiceDecoder {
 public:
  static std::unique_ptr<OpusVoiceDecoder> create();
  ~OpusVoiceDecoder();
  OpusVoiceDecoder(const OpusVoiceDecoder&) = delete;
  OpusVoiceDecoder& operator=(const OpusVoiceDecoder&) = delete;

  /** Decodes a packet to at most `opus_packet_samples_max` samples; returns how many, 0 for a broken one. */
  size_t decode(const uint8_t* packet, size_t count, int16_t* pcm);
  /** Makes the `samples` before a packet, whole 2.5 ms: the last of them out of the copy in it, which is no longer,
   * and those before it up. */
  void recover(const uint8_t* next, size_t count, int16_t* pcm, size_t samples);
  /** Makes so many samples up, whole 2.5 ms. */
  void conceal(int16_t* pcm, size_t samples);

 private:
  struct Library;
  explicit OpusVoiceDecoder(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace sidetone
