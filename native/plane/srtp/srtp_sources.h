// The sources (SSRC) that one receiving key was used with: which have a context of the library, and how far the numbers
// of each have come. A far end may begin a source with every talk spurt or announcement, and a context is large; so a
// few sources have one, and of the others no more is kept than tells a replay.
//
//              authentic packet                 a newer source needs the place
//   unknown ───────────────────────► current ─────────────────────────────────► past
//                                       ▲                                         │
//                                       └─── authentic packet behind the last ────┘
//
// Indices are those of RFC 3711 §3.3.1: the sequence number with the roll-over counter (ROC) before it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sidetone {

class SrtpSources {
 public:
  /** A source with a context. */
  struct Current {
    uint32_t ssrc = 0;
    int64_t last = -1;   // the highest index that was heard; -1: none
    int64_t floor = -1;  // indices up to this one were heard in a context before
    bool returned = false;
    uint64_t heard = 0;  // when, counted in packets of all sources
  };
  /** A source that has none any more, or that was heard under the key before (`replays` is false then: no packet of
   * that key is authentic under this one). */
  struct Past {
    uint32_t ssrc = 0;
    bool replays = false;
    int64_t last = -1;
  };

  /** Sources with a context at a time. */
  static constexpr size_t current_max = 64;
  /** Sources in all. What is beyond them is refused, for a source that is forgotten could be replayed. */
  static constexpr size_t known_max = 4096;

  /** The source, or nullptr where it has no context. */
  Current* current(uint32_t ssrc);
  /** The source as it was, or nullptr. */
  const Past* past(uint32_t ssrc) const;
  /** Whether no source has a context. */
  bool none() const { return current_.empty(); }
  /** Whether there is no place for another source. */
  bool full() const { return current_.size() + past_.size() >= known_max; }
  /** An authentic packet of this index came; `index` is -1 for a report. */
  void hear(Current& source, int64_t index);
  /** A source has a context from now on. True when another one, `given_up`, loses its own for that. */
  bool admit(uint32_t ssrc, int64_t index, uint32_t& given_up);
  /** Takes over how often the numbers of each source of the key before have rolled over. */
  void follow(const SrtpSources& before);

  /** The index that a sequence number stands for, after `last`. As in the library, numbers do not go below the first
   * roll-over before half of them have passed. */
  static int64_t index_of(int64_t last, uint16_t sequence);

 private:
  void put(const Past& source);

  std::vector<Current> current_;
  std::vector<Past> past_;  // by SSRC
  uint64_t packets_ = 0;
};

}  // namespace sidetone
