#include "plane/srtp/srtp_sources.h"

#include <algorithm>

namespace sidetone {
namespace {

constexpr int64_t cycle = 0x10000;  // numbers before they roll over

bool is_before(const SrtpSources::Past& source, uint32_t ssrc) { return source.ssrc < ssrc; }

}  // namespace

int64_t SrtpSources::index_of(int64_t last, uint16_t sequence) {
  if (last < cycle / 2) return sequence;
  return last + static_cast<int16_t>(static_cast<uint16_t>(sequence - static_cast<uint16_t>(last)));
}

SrtpSources::Current* SrtpSources::current(uint32_t ssrc) {
  const auto found =
      std::find_if(current_.begin(), current_.end(), [&](const Current& source) { return source.ssrc == ssrc; });
  return found == current_.end() ? nullptr : &*found;
}

const SrtpSources::Past* SrtpSources::past(uint32_t ssrc) const {
  const auto found = std::lower_bound(past_.begin(), past_.end(), ssrc, is_before);
  return found == past_.end() || found->ssrc != ssrc ? nullptr : &*found;
}

void SrtpSources::hear(Current& source, int64_t index) {
  source.heard = ++packets_;
  source.last = std::max(source.last, index);
}

bool SrtpSources::admit(uint32_t ssrc, int64_t index, uint32_t& given_up) {
  Current source;
  source.ssrc = ssrc;
  const auto known = std::lower_bound(past_.begin(), past_.end(), ssrc, is_before);
  if (known != past_.end() && known->ssrc == ssrc) {
    source.returned = known->replays;
    source.floor = known->replays ? known->last : -1;
    past_.erase(known);
  }
  hear(source, index);
  if (current_.size() < current_max) {
    current_.push_back(source);
    return false;
  }
  const auto silent = std::min_element(current_.begin(), current_.end(),
                                       [](const Current& a, const Current& b) { return a.heard < b.heard; });
  given_up = silent->ssrc;
  put({silent->ssrc, true, std::max(silent->last, silent->floor)});
  *silent = source;
  return true;
}

void SrtpSources::follow(const SrtpSources& before) {
  for (const Current& source : before.current_) {
    if (source.last >= cycle) put({source.ssrc, false, source.last});
  }
  for (const Past& source : before.past_) {
    if (source.last >= cycle && past_.size() < current_max) put({source.ssrc, false, source.last});
  }
}

/** Keeps a past source in its place. */
void SrtpSources::put(const Past& source) {
  const auto at = std::lower_bound(past_.begin(), past_.end(), source.ssrc, is_before);
  if (at == past_.end() || at->ssrc != source.ssrc) past_.insert(at, source);
}

}  // namespace sidetone
