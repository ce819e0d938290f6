#include "test/check.h"

int main() {
  int passed = 0;
  int failed = 0;
  for (const auto& test : sidetone::test::cases()) {
    sidetone::test::failed() = false;
    test.run();
    if (sidetone::test::failed()) std::printf("FAILED: %s\n", test.sentence);
    (sidetone::test::failed() ? failed : passed)++;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}
