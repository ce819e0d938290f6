// The bench's two ends, without any of the platform's code.
//
//   reflector floor LEGS FIRST_PORT PEER_PORT          one UDP socket a leg on FIRST_PORT, +2, ...;
//                                                      every 20 ms epoll, recvmmsg, one send a leg
//   reflector load LEGS FIRST_PORT PEER_PORT SECONDS   one packet a leg every 20 ms from PEER_PORT;
//                                                      prints packets sent and received
//   reflector talk PEER_PORT SECONDS PORT ...          the same to the ports that are given, once for each
//                                                      octet of standard input
#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int packet_bytes = 172;
constexpr int batch = 16;

sockaddr_in loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int bound(int port) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  const sockaddr_in address = loopback(port);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    perror("bind");
    exit(1);
  }
  return fd;
}

void sleep_until(timespec& deadline) {
  deadline.tv_nsec += 20'000'000;
  if (deadline.tv_nsec >= 1'000'000'000) {
    deadline.tv_nsec -= 1'000'000'000;
    deadline.tv_sec++;
  }
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) != 0) {}
}

int drain(int fd) {
  static uint8_t bytes[batch][1500];
  mmsghdr messages[batch] = {};
  iovec vectors[batch];
  for (int i = 0; i < batch; i++) {
    vectors[i] = {bytes[i], sizeof bytes[i]};
    messages[i].msg_hdr.msg_iov = &vectors[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  int total = 0;
  int count;
  while ((count = recvmmsg(fd, messages, batch, MSG_DONTWAIT, nullptr)) > 0) {
    total += count;
    if (count < batch) break;
  }
  return total;
}

void stamp(uint8_t* packet, uint32_t leg, uint32_t tick) {
  memset(packet, 0x90 | static_cast<int>(leg % 16), packet_bytes);  // everyone talks: no frame is silence
  packet[0] = 0x80;
  packet[1] = 0;
  packet[2] = static_cast<uint8_t>(tick >> 8);
  packet[3] = static_cast<uint8_t>(tick);
  const uint32_t timestamp = htonl(tick * 160);
  const uint32_t ssrc = htonl(leg + 1);
  memcpy(packet + 4, &timestamp, 4);
  memcpy(packet + 8, &ssrc, 4);
}

int floor_main(int legs, int first, int peer_port) {
  const int epoll = epoll_create1(0);
  std::vector<int> sockets;
  for (int i = 0; i < legs; i++) {
    sockets.push_back(bound(first + 2 * i));
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = sockets.back();
    epoll_ctl(epoll, EPOLL_CTL_ADD, sockets.back(), &event);
  }
  puts("ready");
  fflush(stdout);
  const sockaddr_in peer = loopback(peer_port);
  uint8_t packet[packet_bytes];
  timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  for (uint32_t tick = 0;; tick++) {
    sleep_until(deadline);
    epoll_event events[512];
    int count;
    for (int round = 0; round <= legs / 512 && (count = epoll_wait(epoll, events, 512, 0)) > 0; round++) {
      for (int i = 0; i < count; i++) drain(events[i].data.fd);
    }
    for (int i = 0; i < legs; i++) {
      stamp(packet, static_cast<uint32_t>(i), tick);
      (void)!sendto(sockets[i], packet, packet_bytes, 0, reinterpret_cast<const sockaddr*>(&peer), sizeof peer);
    }
  }
}

/** The far ends of legs, one packet each every 20 ms, all from and to one socket. */
class Load {
 public:
  Load(const std::vector<int>& ports, int peer_port)
      : fd_(bound(peer_port)), packets_(ports.size() * packet_bytes), vectors_(ports.size()), messages_(ports.size()) {
    const int size = 64 << 20;
    (void)setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    for (const int port : ports) peers_.push_back(loopback(port));
    for (size_t i = 0; i < ports.size(); i++) {
      vectors_[i] = {&packets_[i * packet_bytes], packet_bytes};
      messages_[i] = {};
      messages_[i].msg_hdr.msg_name = &peers_[i];
      messages_[i].msg_hdr.msg_namelen = sizeof peers_[i];
      messages_[i].msg_hdr.msg_iov = &vectors_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }

  /** Talks for so long, and prints the packets that were sent and received meanwhile. */
  void talk(int seconds) {
    while (drain(fd_) > 0) {}
    timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    // What is said later goes on as after a pause: a far end that sees old numbers again drops them.
    const uint32_t first_tick = static_cast<uint32_t>(deadline.tv_sec * 50 + deadline.tv_nsec / 20'000'000);
    long sent = 0;
    long received = 0;
    const size_t legs = messages_.size();
    for (int tick = 0; tick < seconds * 50; tick++) {
      sleep_until(deadline);
      received += drain(fd_);
      for (size_t i = 0; i < legs; i++)
        stamp(&packets_[i * packet_bytes], static_cast<uint32_t>(i), first_tick + static_cast<uint32_t>(tick));
      for (size_t at = 0; at < legs;) {
        const int count = sendmmsg(fd_, &messages_[at], static_cast<unsigned>(legs - at > 256 ? 256 : legs - at), 0);
        if (count <= 0) break;
        sent += count;
        at += static_cast<size_t>(count);
        received += drain(fd_);
      }
    }
    printf("%ld %ld\n", sent, received);
    fflush(stdout);
  }

 private:
  int fd_;
  std::vector<uint8_t> packets_;
  std::vector<iovec> vectors_;
  std::vector<mmsghdr> messages_;
  std::vector<sockaddr_in> peers_;
};

}  // namespace

int main(int argc, char** argv) {
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (argc == 5 && strcmp(argv[1], "floor") == 0) return floor_main(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
  std::vector<int> ports;
  if (argc == 6 && strcmp(argv[1], "load") == 0) {
    for (int i = 0; i < atoi(argv[2]); i++) ports.push_back(atoi(argv[3]) + 2 * i);
    Load(ports, atoi(argv[4])).talk(atoi(argv[5]));
    return 0;
  }
  if (argc > 4 && strcmp(argv[1], "talk") == 0) {
    for (int i = 4; i < argc; i++) ports.push_back(atoi(argv[i]));
    Load load(ports, atoi(argv[2]));
    // The socket stays open in the pauses: to some far ends a closed one is a hang-up.
    while (getchar() != EOF) load.talk(atoi(argv[3]));
    return 0;
  }
  fprintf(stderr,
          "reflector floor LEGS FIRST_PORT PEER_PORT | load LEGS FIRST_PORT PEER_PORT SECONDS | "
          "talk PEER_PORT SECONDS PORT ...\n");
  return 2;
}
