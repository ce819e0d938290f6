/**
 * A carrier on loopback sockets with a small media plane of its own: a real UDP socket a leg, and a record of what was
 * negotiated.
 */

import { createSocket } from 'node:dgram';
import type { DialOptions, IncomingCall, LegListener, LegSignal } from '../../src/call/ports/leg.ts';
import { type Carrier, type CarrierOptions, createCarrier, type Trunk } from '../../src/carrier/carrier.ts';
import { loadNumberPlans } from '../../src/carrier/trunk/number-plan.ts';
import { systemClock } from '../../src/clock.ts';
import { createSeal } from '../../src/database/vault/seal.ts';
import { mayReach } from '../../src/destinations.ts';
import { hexHash } from '../../src/hash.ts';
import { silentLog } from '../../src/log.ts';
import { type MediaNotice, NO_COUNTERS, type RtpLeg, type RtpParameters } from '../../src/media/engine.ts';
import { SRTP_SUITES } from '../../src/sdp/sdes.ts';
import { UserAgent } from '../../src/sip/user-agent.ts';

class TestMedia {
  readonly open = new Set<RtpLeg>();
  readonly negotiated: RtpParameters[] = [];
  opened = 0;
  /** What the newest leg was told by `detectTones`, in order. */
  readonly tones: boolean[] = [];
  /** Tells the newest leg something. */
  notify: (notice: MediaNotice) => void = () => {};
  portsFree = 100;
  srtpSuites = SRTP_SUITES;
  codecs = ['opus', 'G722', 'PCMU', 'PCMA'] as const;

  ready(): boolean {
    return true;
  }

  load() {
    return { legs: this.open.size, ports: 100, portsFree: this.portsFree };
  }

  async openRtpLeg(notify: (notice: MediaNotice) => void): Promise<RtpLeg | undefined> {
    if (this.portsFree === 0) return undefined;
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    this.opened++;
    this.notify = notify;
    const leg: RtpLeg = {
      host: '127.0.0.1',
      port: socket.address().port,
      pipeCodec: 'PCMU',
      negotiate: (parameters) => void this.negotiated.push(parameters),
      play() {},
      stopPlayback() {},
      controlPlayback() {},
      join() {},
      leave() {},
      setMuted() {},
      coach() {},
      setVolume: () => true,
      detectTones: (on) => void this.tones.push(on),
      sendKeys() {},
      detectMachine() {},
      record: () => ({ mask() {}, unmask() {}, stop() {} }),
      counters: async () => NO_COUNTERS,
      close: async () => {
        if (this.open.delete(leg)) await new Promise<void>((resolve) => socket.close(() => resolve()));
        return NO_COUNTERS;
      },
    };
    this.open.add(leg);
    return leg;
  }
}

/** Collects signals and lets a test wait for one. */
export class Signals {
  readonly all: LegSignal[] = [];
  #waiting: { type: string; resolve: (signal: LegSignal) => void }[] = [];
  readonly listener: LegListener = (signal) => {
    this.all.push(signal);
    const found = this.#waiting.filter((each) => each.type === signal.type);
    this.#waiting = this.#waiting.filter((each) => each.type !== signal.type);
    for (const each of found) each.resolve(signal);
  };
  types(): string[] {
    return this.all.map((signal) => signal.type);
  }
  /** Resolves with the first signal of that type, now or to come. */
  until(type: LegSignal['type'], timeoutMs = 10_000): Promise<LegSignal> {
    const known = this.all.find((signal) => signal.type === type);
    if (known !== undefined) return Promise.resolve(known);
    const { promise, resolve, reject } = Promise.withResolvers<LegSignal>();
    const timer = setTimeout(() => reject(new Error(`no ${type} after ${this.types().join(', ')}`)), timeoutMs);
    this.#waiting.push({ type, resolve });
    return promise.finally(() => clearTimeout(timer));
  }
}

/** A user agent whose tokens are counted and whose address is `host`. It sends and receives nothing by itself. */
export function countingAgent(host: string): UserAgent {
  let tokens = 0;
  return new UserAgent({
    entropy: { token: () => `t${++tokens}`, fraction: () => 0 },
    hash: hexHash,
    product: 'test',
    sessionExpiresSec: 1800,
    local: () => ({ host, port: 5060 }),
  });
}

export const trunkTo = (uri: string, more: Partial<Trunk> = {}): Trunk => ({
  name: 'carrier',
  uri,
  username: undefined,
  password: undefined,
  register: false,
  inboundCidrs: ['127.0.0.0/8'],
  maxChannels: undefined,
  codecs: undefined,
  settings: {},
  tlsKey: undefined,
  ...more,
});

export interface Incoming {
  readonly call: IncomingCall & { readonly trunk: string };
  readonly signals: Signals;
}

export class TestCarrier {
  readonly media = new TestMedia();
  readonly incoming: Incoming[] = [];
  trunks: Trunk[] = [];
  /** What is done with each call that comes in. */
  onIncoming: (incoming: Incoming) => void = () => {};
  numberOwner: CarrierOptions['numberOwner'] = async (e164) => (e164 === '+15550002' ? 'app' : undefined);
  #carrier: Carrier | undefined;

  static async open(trunks: Trunk[] = [trunkTo('sip:127.0.0.1:9')], more: Partial<CarrierOptions> = {}): Promise<TestCarrier> {
    const test = new TestCarrier();
    test.trunks = trunks;
    await loadNumberPlans([{ settings: { country_code: '1' } }]);
    test.#carrier = await createCarrier({
      listen: [
        { transport: 'udp', host: '127.0.0.1', port: 0 },
        { transport: 'tcp', host: '127.0.0.1', port: 0 },
      ],
      media: test.media,
      seal: createSeal(new Uint8Array(32)),
      clock: systemClock(),
      log: silentLog,
      trunks: () => test.trunks,
      numberOwner: (e164) => test.numberOwner(e164),
      onInvite(call) {
        const signals = new Signals();
        call.listen(signals.listener);
        const incoming = { call, signals };
        test.incoming.push(incoming);
        test.onIncoming(incoming);
      },
      ...more,
    });
    return test;
  }

  get carrier(): Carrier {
    if (this.#carrier === undefined) throw new Error('not open');
    return this.#carrier;
  }

  port(transport: 'udp' | 'tcp' | 'tls'): number {
    return this.carrier.ports().find((each) => each.transport === transport)?.port ?? 0;
  }

  async dial(more: Partial<DialOptions> = {}) {
    const signals = new Signals();
    const result = await this.carrier.dial({
      appUuid: 'app',
      to: '+15550100',
      from: '+15550002',
      mayReach: mayReach(),
      listener: signals.listener,
      ...more,
    });
    if ('unavailable' in result) throw new Error(result.unavailable);
    result.leg.start();
    return { leg: result.leg, signals };
  }

  /** Resolves when no dialog is left: the last BYE has its answer, which comes late where datagrams were lost. */
  async idle(withinMs = 5_000): Promise<void> {
    const until = performance.now() + withinMs;
    while (this.carrier.load().dialogs > 0) {
      if (performance.now() > until) throw new Error(`${this.carrier.load().dialogs} dialogs are left`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  close(): Promise<void> {
    return this.carrier.close();
  }
}
