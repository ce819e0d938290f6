#include "plane/stream/stream_inbox.h"

#include <cstddef>
#include <cstdint>

#include "test/check.h"

using namespace sidetone;

/** The bytes that are allocated now, as the sanitizer under which these tests run counts them. */
extern "C" size_t __sanitizer_get_current_allocated_bytes();  // NOLINT(bugprone-reserved-identifier)

TEST("audio that is written octet by octet takes about the memory of its bytes while it waits") {
  const auto [number, inbox] = StreamInbox::open();
  constexpr size_t most = 200'000;
  const uint8_t octet = 1;
  const size_t before = __sanitizer_get_current_allocated_bytes();
  for (size_t i = 0; i < most; i++) CHECK(inbox->write(&octet, 1, most));
  CHECK(!inbox->write(&octet, 1, most));
  CHECK(__sanitizer_get_current_allocated_bytes() - before < 2 * most);
  StreamInbox::close(number);
}
