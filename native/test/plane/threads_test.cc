// What several threads touch at once: two planes that hand legs to each other while script writes into their inboxes
// and recordings are written. For ThreadSanitizer above all (`make tsan`).
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "plane/plane.h"
#include "test/check.h"

using namespace sidetone;

namespace {

constexpr uint32_t legs = 8;
constexpr uint32_t room_number = 100;
constexpr uint32_t recording_number = 200;

struct Counts {
  std::atomic<uint32_t> frames{0};
  std::atomic<uint32_t> arrivals{0};
  std::atomic<uint32_t> recordings_over{0};
  std::atomic<bool> wrong{false};
};

/** One plane's thread: a room of its own, whose members go to the other plane every few ticks. */
void run(Plane& plane, uint32_t room, uint32_t other, const std::string& path, Counts& counts,
         const std::atomic<bool>& stop) {
  Now now{1'000'000'000, 1'700'000'000'000'000};
  std::vector<uint8_t> bytes(1 << 16);
  uint32_t recording = recording_number + room * 100;
  counts.wrong = counts.wrong || !plane.open_room(room);
  for (int tick = 0; !stop; tick++) {
    plane.tick(now);
    now.us += Plane::tick_us;
    now.wall_us += Plane::tick_us;
    if (plane.take_frames(bytes.data(), bytes.size()) > 0) counts.frames++;
    Notice notices[64];
    const size_t count = plane.take_notices(notices, 64);
    for (size_t i = 0; i < count; i++) {
      if (notices[i].kind == NoticeKind::moved) {
        counts.arrivals++;
        (void)plane.join(notices[i].leg, room, false, 100, 100);
      }
      if (notices[i].kind == NoticeKind::recording_ended || notices[i].kind == NoticeKind::recording_failed)
        counts.recordings_over++;
    }
    for (uint32_t leg = 1; leg <= legs; leg++) {
      if ((static_cast<uint32_t>(tick) + leg) % 7 != 0 || plane.participant(leg) == nullptr) continue;
      if (leg % 4 == 0 && plane.participant(leg)->recorder(recording) == nullptr &&
          recording < recording_number + room * 100 + 20) {
        RecorderOptions options;
        options.id = ++recording;
        options.path = path;
        (void)plane.record(leg, options);
      }
      if (tick % 3 == 0 && leg % 4 == 0) (void)plane.stop_recording(leg, recording);
      counts.wrong = counts.wrong || !plane.move(leg, other, now);
    }
  }
}

}  // namespace

TEST("planes in threads of their own hand legs to each other while they are written to and recorded") {
  int error = 0;
  std::unique_ptr<Plane> planes[2] = {Plane::create(60'000'000, error), Plane::create(60'000'000, error)};
  CHECK(planes[0] && planes[1]);
  std::vector<std::pair<uint32_t, std::shared_ptr<StreamInbox>>> inboxes;
  for (uint32_t leg = 1; leg <= legs; leg++) {
    inboxes.push_back(StreamInbox::open());
    StreamFormat format;
    format.rate_hz = rate_table_hz[leg % rates];
    CHECK(planes[leg % 2]->open_stream(leg, inboxes.back().second, format, format));
  }
  char folder[] = "/tmp/sidetone-threads-XXXXXX";
  CHECK(::mkdtemp(folder) != nullptr);
  const std::string paths[2] = {std::string(folder) + "/a.wav", std::string(folder) + "/b.wav"};
  Counts counts;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  const uint32_t numbers[2] = {planes[0]->number(), planes[1]->number()};
  for (uint32_t i = 0; i < 2; i++) {
    threads.emplace_back(run, std::ref(*planes[i]), room_number + i, numbers[1 - i], paths[i], std::ref(counts),
                         std::cref(stop));
  }
  const std::vector<uint8_t> block(640, 0x11);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int i = 0; (counts.arrivals < 500 || counts.frames < 500) && std::chrono::steady_clock::now() < until; i++) {
    for (const auto& inbox : inboxes) (void)StreamInbox::find(inbox.first)->write(block.data(), block.size(), 10'000);
    if (i % 16 == 8) inboxes[static_cast<size_t>(i) / 16 % legs].second->pause(i % 32 == 8);
    if (i % 16 == 0) inboxes[static_cast<size_t>(i) / 16 % legs].second->clear();
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (auto& plane : planes) plane.reset();  // what is on its way between them goes too
  for (const auto& inbox : inboxes) StreamInbox::close(inbox.first);
  // A recording that was still to be opened may make its file meanwhile. Without the folder it finds no place.
  std::error_code error_code;
  for (int tries = 0; tries < 1'000 && std::filesystem::exists(folder, error_code); tries++)
    (void)std::filesystem::remove_all(folder, error_code);
  CHECK(!counts.wrong);
  CHECK(counts.arrivals >= 500 && counts.frames >= 500);
}
