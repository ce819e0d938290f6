// Preloaded into a process (LD_PRELOAD): names below `mute.test` have a DNS server that never answers getaddrinfo.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  static int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
  if (next == NULL) next = dlsym(RTLD_NEXT, "getaddrinfo");
  while (name != NULL && strstr(name, ".mute.test") != NULL) pause();
  return next(name, service, hints, found);
}
