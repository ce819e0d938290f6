import type { RtpParameters } from '../src/media/engine.ts';

/**
 * What is agreed with a far end on loopback: 20 ms of mu-law both ways, keys by telephone-event; nobody reads its RTCP.
 */
export function farEnd(port: number): RtpParameters {
  return {
    remoteHost: '127.0.0.1',
    remotePort: port,
    learnFrom: [],
    held: false,
    remoteRtcpPort: 9,
    codec: 'PCMU',
    payloadType: 0,
    telephoneEventPayloadType: 101,
    ptimeMs: 20,
    send: true,
    receive: true,
  };
}
