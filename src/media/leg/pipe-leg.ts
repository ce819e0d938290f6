/**
 * One end of a pipe between two nodes: plain RTP on the private interface, for one member of a Room that another node
 * mixes. Addresses and SSRCs are agreed on beforehand, so nothing is learnt from what comes.
 */
import { randomInt } from 'node:crypto';
import type { MediaPipe, PipeCodec, PipeEnd } from '../audio.ts';
import { NOTICE, type NoticeRecord } from '../worker/notice.ts';
import { UdpLeg, type UdpLegOptions } from './udp-leg.ts';

/**
 * The payload types of a pipe: the static ones of RFC 3551, and dynamic ones for L16. The name of the codec, on which
 * the nodes agree, stands for the number.
 */
const PAYLOAD_TYPE: Readonly<Record<PipeCodec, number>> = {
  PCMU: 0,
  PCMA: 8,
  G722: 9,
  'L16/8000': 96,
  'L16/16000': 97,
  'L16/24000': 98,
};
const PTIME_MS = 20;

interface PipeLegOptions extends UdpLegOptions {
  /** Packets are passed on to it and from it from the first tick on: it is alone with one leg. */
  readonly atOnce: boolean;
  readonly onSilent: () => void;
}

export class PipeLeg extends UdpLeg implements MediaPipe {
  readonly ssrc = randomInt(1, 0xffff_ffff);
  readonly #pipe: PipeLegOptions;

  constructor(options: PipeLegOptions) {
    super(options);
    this.#pipe = options;
  }

  get end(): PipeEnd {
    return { host: this.host, port: this.port, ssrc: this.ssrc };
  }

  connect({ host, port, ssrc }: PipeEnd, codec: PipeCodec): void {
    if (this.over) return;
    this.placement.command({ type: 'pipe', leg: this.id, ssrc: this.ssrc, theirs: ssrc, atOnce: this.#pipe.atOnce });
    this.negotiate({
      remoteHost: host,
      remotePort: port,
      remoteRtcpPort: port + 1,
      learnFrom: [],
      held: false,
      codec,
      payloadType: PAYLOAD_TYPE[codec],
      telephoneEventPayloadType: undefined,
      ptimeMs: PTIME_MS,
      send: true,
      receive: true,
    });
  }

  override notice(record: NoticeRecord): void {
    if (record.kind === NOTICE.pipeSilent) this.#pipe.onSilent();
    else super.notice(record);
  }
}
