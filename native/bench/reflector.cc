// The bench's two ends, without any of the platform's code.
//
//   reflector floor LEGS FIRST_PORT PEER_PORT          one UDP socket a leg on FIRST_PORT, +2, ...;
//                                                      every 20 ms epoll, recvmmsg, one send a leg
//   reflector load LEGS FIRST_PORT PEER_PORT SECONDS   one packet a leg every 20 ms from PEER_PORT;
//                                                      prints packets sent and received
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

int load_main(int legs, int first, int peer_port, int seconds) {
  const int fd = bound(peer_port);
  const int size = 64 << 20;
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  std::vector<sockaddr_in> peers;
  for (int i = 0; i < legs; i++) peers.push_back(loopback(first + 2 * i));
  std::vector<uint8_t> packets(static_cast<size_t>(legs) * packet_bytes);
  std::vector<iovec> vectors(legs);
  std::vector<mmsghdr> messages(legs);
  for (int i = 0; i < legs; i++) {
    vectors[i] = {&packets[static_cast<size_t>(i) * packet_bytes], packet_bytes};
    messages[i] = {};
    messages[i].msg_hdr.msg_name = &peers[i];
    messages[i].msg_hdr.msg_namelen = sizeof peers[i];
    messages[i].msg_hdr.msg_iov = &vectors[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  long sent = 0;
  long received = 0;
  for (int tick = 0; tick < seconds * 50; tick++) {
    sleep_until(deadline);
    received += drain(fd);
    for (int i = 0; i < legs; i++)
      stamp(&packets[static_cast<size_t>(i) * packet_bytes], static_cast<uint32_t>(i), static_cast<uint32_t>(tick));
    for (int at = 0; at < legs;) {
      const int count = sendmmsg(fd, &messages[at], static_cast<unsigned>(legs - at > 256 ? 256 : legs - at), 0);
      if (count <= 0) break;
      sent += count;
      at += count;
      received += drain(fd);
    }
  }
  printf("%ld %ld\n", sent, received);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (argc == 5 && strcmp(argv[1], "floor") == 0) return floor_main(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
  if (argc == 6 && strcmp(argv[1], "load") == 0)
    return load_main(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
  fprintf(stderr, "reflector floor LEGS FIRST_PORT PEER_PORT | load LEGS FIRST_PORT PEER_PORT SECONDS\n");
  return 2;
}
