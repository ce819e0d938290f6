// One body compiled for several instruction sets. A kernel writes its loop once as a KERNEL_BODY (always inlined) and
// wraps it with KERNEL_DISPATCH, which picks the widest set the processor has, once. On other architectures only the
// portable form exists.
#pragma once

#define KERNEL_BODY static inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__)
#define KERNEL_WIDE 1
#define KERNEL_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define KERNEL_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#else
#define KERNEL_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma,prefer-vector-width=512")))
#endif
#else
#define KERNEL_WIDE 0
#endif

namespace sidetone {

/** Instruction sets in rising order: what runs on one runs on those after it. */
enum class Width { portable, avx2, avx512, vbmi };

/** The widest instruction set of this processor; a pure function of the hardware. */
inline Width kernel_width() {
#if KERNEL_WIDE
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return __builtin_cpu_supports("avx512vbmi") ? Width::vbmi : Width::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Width::avx2;
#endif
  return Width::portable;
}

}  // namespace sidetone
