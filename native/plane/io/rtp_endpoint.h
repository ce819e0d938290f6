// The owner of an RTP socket, as the receiver and the sender see it.
#pragma once
#include "plane/io/port.h"
#include "plane/notice.h"
#include "plane/now.h"

namespace sidetone {

class RtpEndpoint {
 public:
  /** The descriptor of its RTP socket. */
  virtual int rtp_fd() const = 0;
  /** Takes one datagram that came to the socket. Its bytes are valid during the call only. */
  virtual void receive_rtp(const Datagram& datagram, const Now& now, Notices& notices) = 0;
  /** Tells that the system refused the packet that was last handed to the sender. `error` is an errno. */
  virtual void refused(int error) = 0;
  /** Prefetches what `receive_rtp` touches. With a thousand endpoints none of it is in the cache any more. */
  virtual void fetch() const = 0;
  /** Prefetches the audio buffer. Call it a while after `fetch`, so that the pointers to it are in the cache. */
  virtual void fetch_audio() const = 0;

 protected:
  ~RtpEndpoint() = default;
};

}  // namespace sidetone
