// Packets of another payload type than the one in use. Who agreed on several may change between them at any time
// (RFC 3264 §5.1); a stray packet changes nothing.
#pragma once
#include <cstdint>

namespace sidetone {

class OtherPayload {
 public:
  /** Takes a packet of a type that is not in use. True when the far end means it: at the third in a row. */
  bool take(uint8_t type) {
    in_row_ = type == type_ ? in_row_ + 1 : 1;
    type_ = type;
    return in_row_ == least && told_++ < told_max;
  }
  /** A packet of the type in use has come. */
  void over() { in_row_ = 0; }

 private:
  static constexpr uint32_t least = 3;
  /** Changes that are told in one call. */
  static constexpr uint32_t told_max = 32;

  uint32_t in_row_ = 0;
  uint32_t told_ = 0;
  uint8_t type_ = 0;
};

}  // namespace sidetone
