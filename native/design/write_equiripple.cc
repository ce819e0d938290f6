// Prints kernel/resampler/equiripple.h: `make -C native tables`.
#include <cstdio>

#include "design/equiripple.h"

int main() {
  std::printf("// The low-passes of the resampler, their taps from the centre on.\n");
  std::printf(
      "// Written by design/write_equiripple.cc (`make -C native tables`). Do not edit.\n// clang-format off\n");
  std::printf("#pragma once\n#include <cstdint>\n\nnamespace sidetone {\n\n");
  std::printf("/** Taps of a low-pass at `ratio` times a rate: `half` of them on either side of the centre. */\n");
  std::printf("struct Equiripple {\n  uint32_t ratio;\n  uint32_t half;\n  const float* taps;\n};\n");
  const auto low_passes = sidetone::design::equiripple_low_passes();
  for (const auto& [ratio, taps] : low_passes) {
    std::printf("\ninline constexpr float equiripple_%u[] = {", ratio);
    for (size_t i = 0; i < taps.size(); i++)
      std::printf("%s%.8ef", i == 0 ? "\n    " : i % 8 == 0 ? ",\n    " : ", ", taps[i]);
    std::printf(",\n};\n");
  }
  std::printf("\ninline constexpr Equiripple equiripples[] = {\n");
  for (const auto& [ratio, taps] : low_passes)
    std::printf("    {%u, %zu, equiripple_%u},\n", ratio, taps.size() - 1, ratio);
  std::printf("};\n\n}  // namespace sidetone\n");
  return 0;
}
