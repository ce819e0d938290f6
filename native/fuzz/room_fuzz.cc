// Rooms of two planes whose members come, go, move, are muted, recorded and played to in any order between ticks. Each
// tick gives every member one frame; a room tells that someone left exactly as often as that he joined; nobody is heard
// where nothing was said.
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "plane/plane.h"

using namespace sidetone;

namespace {

constexpr uint32_t numbers = 16;  // of legs and rooms together

struct Bytes {
  const uint8_t* data;
  size_t size;
  uint8_t next() {
    if (size == 0) return 0;
    size--;
    return *data++;
  }
};

StreamFormat format(uint8_t what) {
  StreamFormat format;
  format.encoding = (what & 1) != 0 ? StreamEncoding::mulaw : StreamEncoding::pcm;
  format.rate_hz = rate_table_hz[what >> 1 & 3];
  return format;
}

struct World {
  std::unique_ptr<Plane> planes[2];
  std::map<uint32_t, std::shared_ptr<StreamInbox>> inboxes;
  std::map<uint32_t, int> seated;  // by leg: rooms joined that were not left
  Now now{1'000'000'000, 1'700'000'000'000'000};
  bool sound = false;

  World() {
    int error = 0;
    for (auto& plane : planes) plane = Plane::create(60'000'000, error);
    if (!planes[0] || !planes[1]) __builtin_trap();
  }

  void tick(bool fetch) {
    for (auto& plane : planes) {
      plane->tick(now);
      if (fetch) frames(*plane);
      Notice all[64];
      size_t count;
      while ((count = plane->take_notices(all, 64)) > 0) {
        for (size_t i = 0; i < count; i++) notice(all[i]);
      }
    }
    now.us += Plane::tick_us;
    now.wall_us += Plane::tick_us;
  }

  void notice(const Notice& notice) {
    if (notice.kind == NoticeKind::room_joined && ++seated[notice.leg] > 1) __builtin_trap();
    if (notice.kind == NoticeKind::room_left && seated[notice.leg] > 0)
      seated[notice.leg]--;  // one that was never in is told so too
    if (notice.kind == NoticeKind::recording_failed) __builtin_trap();
  }

  void frames(Plane& plane) {
    static std::vector<uint8_t> bytes(StreamLeg::frames_max_bytes * 2);
    const size_t count = plane.take_frames(bytes.data(), bytes.size());
    for (size_t at = 0; at < count;) {
      uint32_t header[3];
      if (at + sizeof header > count) __builtin_trap();
      std::memcpy(header, &bytes[at], sizeof header);
      at += sizeof header;
      if (at + header[2] > count || inboxes.count(header[0]) == 0) __builtin_trap();
      for (uint32_t i = 0; i < header[2] && !sound; i++) {
        if (bytes[at + i] != 0 && bytes[at + i] != mulaw_silence) __builtin_trap();
      }
      at += (header[2] + 3) / 4 * 4;
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  Bytes in{data, size};
  int recordings = 0;
  int ticks = 0;
  uint32_t playback = 0;
  while (in.size > 0 && ticks < 400) {
    const uint8_t what = in.next();
    Plane& plane = *world.planes[what >> 7];
    const uint32_t id = 1 + in.next() % numbers;
    const uint8_t how = in.next();
    const bool on = (how & 1) != 0;
    switch (what % 24) {
      case 0:
      case 1: {
        if (world.planes[0]->participant(id) != nullptr || world.planes[1]->participant(id) != nullptr) break;
        const auto inbox = std::make_shared<StreamInbox>();
        if (plane.open_stream(id, inbox, format(how), format(static_cast<uint8_t>(how >> 3))))
          world.inboxes[id] = inbox;
        break;
      }
      case 2:
      case 3:
        (void)plane.open_room(id);
        if (how % 3 == 0) (void)plane.open_music(id, 500 + id);
        break;
      case 4:
      case 5:
      case 6:
        (void)plane.join(id, 1 + how % numbers, how > 200, how, 200 - how % 201);
        if (how % 5 == 0) (void)plane.coach(id, 1 + how % 7);
        break;
      case 7: (void)plane.leave(id); break;
      case 8: (void)plane.drop(id); break;
      case 9: (void)plane.mute(id, on); break;
      case 10: (void)plane.volume(id, on, how % 201); break;
      case 11:
      case 12: {
        if (world.inboxes.count(id) == 0) break;
        world.sound = world.sound || how > 0;
        const std::vector<uint8_t> bytes(static_cast<size_t>(how) * 16, static_cast<uint8_t>(how * 7));
        (void)world.inboxes[id]->write(bytes.data(), bytes.size(), 100'000);
        break;
      }
      case 13: (void)plane.play(how < 64 ? 500 + id : id, ++playback, rate_table_hz[how & 3], how % 201); break;
      case 14: {
        world.sound = true;
        const std::vector<int16_t> pcm(static_cast<size_t>(how) * 8, static_cast<int16_t>(how * 250 - 32'000));
        (void)plane.feed(how < 64 ? 500 + id : id, playback, pcm.data(), pcm.size());
        break;
      }
      case 15: (void)(on ? plane.finish(id, playback) : plane.stop(id, playback)); break;
      case 16: (void)(how < 128 ? plane.pause(id, playback, on) : plane.seek(id, playback)); break;
      case 17: {
        if (recordings == 3) break;  // each takes a ring of seconds, and an eighth of a second to be forgotten
        RecorderOptions options;
        options.id = 1000 + static_cast<uint32_t>(recordings++);
        options.path = "/dev/null";
        options.rate_hz = (how & 2) != 0 ? 0 : 8000;
        options.include_gaps = on;
        options.voices = (how & 4) != 0;
        (void)plane.record(id, options);
        break;
      }
      case 18: (void)(how < 128 ? plane.mask(id, 1000 + how % 3, on) : plane.stop_recording(id, 1000 + how % 3)); break;
      case 19: (void)plane.move(id, world.planes[on ? 1 : 0]->number(), world.now); break;
      case 20: {
        Counters counters;
        (void)(how < 64 ? plane.close(id, counters, world.now) : how < 128 && plane.close_room(id));
        break;
      }
      case 21:
        (void)(on ? plane.detect_voices(id, how > 128) : plane.detect_tones(id, how > 128));
        if (how > 240) (void)plane.detect_answerer(id, 1000 + how);
        break;
      default:
        for (int i = 0; i <= how % 8; i++, ticks++) world.tick(how < 250);
    }
  }
  // Everyone goes, those too who are on their way between planes: then nobody sits anywhere.
  world.tick(true);
  for (uint32_t id = 1; id <= numbers; id++) {
    for (auto& plane : world.planes) {
      Counters counters;
      (void)plane->close(id, counters, world.now);
      (void)plane->close_room(id);
    }
  }
  for (int i = 0; i < 3; i++) world.tick(true);
  for (const auto& plane : world.planes) {
    if (plane->legs() != 0) __builtin_trap();
  }
  for (const auto& entry : world.seated) {
    if (entry.second != 0) __builtin_trap();
  }
  return 0;
}
