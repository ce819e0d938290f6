// A test is a function with a sentence for a name; a failed CHECK says where and ends it.
#pragma once
#include <cstdio>
#include <vector>

namespace sidetone::test {

struct Case {
  const char* sentence;
  void (*run)();
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

inline bool& failed() {
  static bool flag = false;
  return flag;
}

struct Register {
  Register(const char* sentence, void (*run)()) { cases().push_back({sentence, run}); }
};

}  // namespace sidetone::test

#define TEST_JOIN2(a, b) a##b
#define TEST_JOIN(a, b) TEST_JOIN2(a, b)
#define TEST(sentence)                                                                                           \
  static void TEST_JOIN(test_, __LINE__)();                                                                      \
  static const ::sidetone::test::Register TEST_JOIN(register_, __LINE__)(sentence, &TEST_JOIN(test_, __LINE__)); \
  static void TEST_JOIN(test_, __LINE__)()

#define CHECK(condition)                                            \
  do {                                                              \
    if (!(condition)) {                                             \
      std::printf("  %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ::sidetone::test::failed() = true;                            \
      return;                                                       \
    }                                                               \
  } while (false)
