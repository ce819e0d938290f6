/** A leg that speaks RTP: what was negotiated becomes commands of literal addresses and bounded numbers. */
import { isIP } from 'node:net';
import type { LegCodec, PipeCodec, RtpParameters } from '../audio.ts';
import { codecRateHz } from '../worker/worker-command.ts';
import { rtpPipeCodec } from './pipe-codec.ts';
import { PlaneLeg } from './plane-leg.ts';

/**
 * Bounds the terms to what the plane takes: literal addresses, ports of 16 bits, packets of 10 to 60 ms. Nothing is
 * sent to a far end without an address until it is heard from.
 */
function sane(agreed: RtpParameters): RtpParameters {
  const port = (value: number) => (Number.isInteger(value) && value > 0 && value <= 65_535 ? value : 9); // discard (RFC 863)
  return {
    ...agreed,
    // A zone (RFC 4007 §11) names an interface of the far end's machine, which says nothing here.
    remoteHost: isIP(agreed.remoteHost) === 0 || agreed.remoteHost.includes('%') ? '0.0.0.0' : agreed.remoteHost,
    remotePort: port(agreed.remotePort),
    remoteRtcpPort: port(agreed.remoteRtcpPort),
    ptimeMs: Math.min(60, Math.max(10, Math.round(agreed.ptimeMs) || 20)),
  };
}

export abstract class NegotiatedLeg extends PlaneLeg {
  #codec: LegCodec = 'PCMU';

  protected override get rateHz(): number {
    return codecRateHz(this.#codec);
  }

  get pipeCodec(): PipeCodec {
    return rtpPipeCodec(this.#codec);
  }

  negotiate(parameters: RtpParameters): void {
    if (this.over) return;
    this.#codec = parameters.codec;
    this.placement.command({ type: 'negotiate', leg: this.id, parameters: sane(parameters) });
  }
}
