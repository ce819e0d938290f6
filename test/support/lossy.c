// Preloaded into a peer (LD_PRELOAD): loses a share of its UDP packets, both ways, as a bad path would. LOSS_PERCENT says how many. What the peer
// answers to an INVITE is not lost: SIPp takes the INVITE that is then repeated for a new one. The user agents' own tests lose those too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int lost(int fd) {
  static int percent = -1;
  static unsigned seed = 4475;
  int type = 0;
  socklen_t size = sizeof type;
  if (percent < 0) {
    const char *set = getenv("LOSS_PERCENT");
    percent = set == NULL ? 0 : atoi(set);
  }
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_DGRAM) return 0;
  return rand_r(&seed) % 100 < percent;
}

ssize_t sendto(int fd, const void *bytes, size_t count, int flags, const struct sockaddr *to, socklen_t length) {
  static ssize_t (*next)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
  if (next == NULL) next = dlsym(RTLD_NEXT, "sendto");
  const int answers_invite = count > 8 && memcmp(bytes, "SIP/2.0 ", 8) == 0 && memmem(bytes, count, " INVITE\r\n", 9) != NULL;
  return !answers_invite && lost(fd) ? (ssize_t)count : next(fd, bytes, count, flags, to, length);
}

ssize_t recvfrom(int fd, void *bytes, size_t count, int flags, struct sockaddr *from, socklen_t *length) {
  static ssize_t (*next)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
  if (next == NULL) next = dlsym(RTLD_NEXT, "recvfrom");
  const ssize_t got = next(fd, bytes, count, flags, from, length);
  if (got < 0 || !lost(fd)) return got;
  // The peer was told that there is something to read: it gets a keep-alive (RFC 5626), which says nothing.
  if (count < 4) return got;
  memcpy(bytes, "\r\n\r\n", 4);
  return 4;
}
