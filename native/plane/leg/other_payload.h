// Packets of another payload type than the one in use. Who agreed on several may change between them at any time
// (RFC 3264 §5.1); a stray packet changes nothing.
#pragma once
#include <algorithm>
#include <cstdint>

namespace sidetone {

class OtherPayload {
 public:
  /** Takes a packet of a type that is not in use. True when the far end means it, once: at the third in a row, or after
   * it where too many changes were told lately. */
  bool take(uint8_t type, int64_t now_us) {
    if (type != type_) over();
    type_ = type;
    if (++in_row_ < least || told_ || !permits(now_us)) return false;
    told_ = true;
    return true;
  }
  /** A packet of the type in use has come. */
  void over() {
    in_row_ = 0;
    told_ = false;
  }

  /** Changes that are told at once. */
  static constexpr int64_t at_once_most = 32;
  /** One in so long is told of those that go on: each restarts the playout. */
  static constexpr int64_t each_us = 1'000'000;

 private:
  static constexpr uint32_t least = 3;

  bool permits(int64_t now_us) {
    paid_us_ = std::max(paid_us_, now_us);
    if (paid_us_ - now_us > (at_once_most - 1) * each_us) return false;
    paid_us_ += each_us;
    return true;
  }

  int64_t paid_us_ = 0;  // when nothing is left of what was told
  uint32_t in_row_ = 0;
  bool told_ = false;  // the change to that type
  uint8_t type_ = 0;
};

}  // namespace sidetone
