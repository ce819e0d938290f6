/** A leg on a pair of UDP ports of its own. */
import type { RtpLeg } from '../audio.ts';
import { NegotiatedLeg } from './negotiated-leg.ts';
import type { PlaneLegOptions } from './plane-leg.ts';

export interface UdpLegOptions extends PlaneLegOptions {
  readonly host: string;
  readonly port: number;
}

export class UdpLeg extends NegotiatedLeg implements RtpLeg {
  readonly host: string;
  readonly port: number;

  constructor(options: UdpLegOptions) {
    super(options);
    this.host = options.host;
    this.port = options.port;
    this.placement.command({ type: 'open', leg: options.id, host: options.host, port: options.port });
  }
}
