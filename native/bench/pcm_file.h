// Sound as the benches read it: 16-bit PCM without a header.
#pragma once
#include <cstdint>
#include <cstdio>
#include <vector>

namespace sidetone::bench {

/** The samples of a file; none where it cannot be opened. */
inline std::vector<int16_t> read_pcm(const char* path) {
  std::vector<int16_t> pcm;
  FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return pcm;
  int16_t block[4096];
  size_t count;
  while ((count = std::fread(block, sizeof(int16_t), 4096, file)) > 0) pcm.insert(pcm.end(), block, block + count);
  std::fclose(file);
  return pcm;
}

}  // namespace sidetone::bench
