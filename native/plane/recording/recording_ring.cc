#include "plane/recording/recording_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace sidetone {
namespace {

constexpr char magic[8] = {'S', 'I', 'D', 'E', 'R', 'I', 'N', 'G'};
constexpr size_t check_at = 24;

void le32(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = static_cast<uint8_t>(value >> (8 * i));
}

uint32_t fnv1a(const uint8_t* bytes, size_t count, uint32_t hash) {
  for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

}  // namespace

std::unique_ptr<RecordingRing> RecordingRing::make(const std::string& path, const std::string& wav, uint32_t rate_hz,
                                                   size_t bytes) {
  if (wav.empty() || wav.size() > name_max) return nullptr;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  const size_t size = header_bytes + bytes;
  void* memory = MAP_FAILED;
  if (::fallocate(fd, 0, 0, static_cast<off_t>(size)) == 0)
    memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) {
    (void)::unlink(path.c_str());
    return nullptr;
  }
  uint8_t* header = static_cast<uint8_t*>(memory);
  std::memcpy(header, magic, sizeof magic);
  le32(header + 8, version);
  le32(header + 12, rate_hz);
  le32(header + 16, static_cast<uint32_t>(bytes));
  le32(header + 20, static_cast<uint32_t>(wav.size()));
  std::memcpy(header + name_at, wav.data(), wav.size());
  le32(header + check_at, fnv1a(header + name_at, header_bytes - name_at, fnv1a(header, check_at, 2166136261u)));
  new (header + put_at) Word(0);
  new (header + taken_at) Word(0);
  put(header, 0);
  taken(header, 0);
  return std::unique_ptr<RecordingRing>(new RecordingRing(path, header, size));
}

RecordingRing::~RecordingRing() {
  remove();
  (void)::munmap(memory_, size_);
}

void RecordingRing::remove() {
  if (path_.empty()) return;
  (void)::unlink(path_.c_str());
  path_.clear();
}

}  // namespace sidetone
