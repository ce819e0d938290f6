// Memory that will be needed soon.
#pragma once
#include <cstddef>

namespace sidetone {

/** Asks for the lines of so many bytes, so that they are in the cache when they are used. */
inline void cache_fetch(const void* at, std::ptrdiff_t bytes) {
  for (std::ptrdiff_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(at) + i);
}

}  // namespace sidetone
