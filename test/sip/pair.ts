/** Two user agents and a bad network between them, on a clock of our own. */
import { createHash } from 'node:crypto';
import type { Call } from '../../src/sip/call/call.ts';
import type { CallEvent } from '../../src/sip/call/call-event.ts';
import type { Peer } from '../../src/sip/flow.ts';
import type { TransportName } from '../../src/sip/message/via.ts';
import { UserAgent, type UserAgentOptions } from '../../src/sip/user-agent.ts';
import type { UserAgentOutput } from '../../src/sip/user-agent-output.ts';

export const START = 1_000_000;
export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (data: Uint8Array): string => new TextDecoder().decode(data);
const hash = (name: string, value: string | Uint8Array): string =>
  createHash(name.replace('-', '').replace('SHA512-256', 'SHA512-256').toLowerCase()).update(value).digest('hex');

let tokens = 0;
const entropyOf = (random: () => number) => ({
  token: () => `t${(++tokens).toString(36)}x${Math.floor(random() * 2 ** 32).toString(36)}`,
  fraction: random,
});

export interface Weather {
  readonly loss: number;
  readonly duplicate: number;
  /** Longest delay, ms; more than one packet in flight may arrive in another order. */
  readonly delayMs: number;
}

export const CALM: Weather = { loss: 0, duplicate: 0, delayMs: 0 };

export class Party {
  readonly agent: UserAgent;
  readonly events = new Map<Call, CallEvent[]>();
  readonly invited: Call[] = [];
  readonly outputs: UserAgentOutput[] = [];
  /** Called at each event, to answer it. */
  react: (call: Call, event: CallEvent | { readonly type: 'invite' }) => void = () => {};
  readonly host: string;
  constructor(host: string, random: () => number, options: Partial<UserAgentOptions> = {}) {
    this.host = host;
    this.agent = new UserAgent({
      entropy: entropyOf(random),
      hash,
      product: 'test',
      local: () => ({ host, port: 5060 }),
      sessionExpiresSec: 1800,
      ...options,
    });
  }
  ends(call: Call): CallEvent[] {
    return (this.events.get(call) ?? []).filter((event) => event.type === 'ended');
  }
  /** What a call has told, its first response and each INVITE that was sent anew aside. */
  types(call: Call | undefined): string[] {
    const types = call === undefined ? [] : (this.events.get(call) ?? []).map((event) => event.type);
    return types.filter((type) => type !== 'trying' && type !== 'sent_anew');
  }
}

interface Packet {
  readonly at: number;
  readonly order: number;
  readonly to: Party;
  readonly from: Party;
  readonly data: Uint8Array;
  readonly transport: TransportName;
}

export class Network {
  now = START;
  readonly wire: { from: string; line: string; data: string; at: number }[] = [];
  /** Returns true to lose this packet, whatever the weather. */
  eat: (from: Party, message: string) => boolean = () => false;
  readonly #parties: readonly Party[];
  readonly #weather: Weather;
  readonly #random: () => number;
  #packets: Packet[] = [];
  #order = 0;
  #actions: { at: number; order: number; run: () => void }[] = [];

  constructor(parties: readonly Party[], weather: Weather, random: () => number) {
    this.#parties = parties;
    this.#weather = weather;
    this.#random = random;
  }

  /** Does something at a time, counted from now. */
  after(ms: number, run: () => void): void {
    this.#actions.push({ at: this.now + ms, order: this.#order++, run });
  }

  /**
   * Runs until nothing is left to happen, or `until` ms from the start. Throws when it takes more steps than anything
   * should.
   */
  run(until = Infinity): void {
    const stop = START + until;
    for (let steps = 0; steps < 100_000; steps++) {
      this.#collect();
      const times = [
        ...this.#packets.map((p) => p.at),
        ...this.#actions.map((a) => a.at),
        ...this.#parties.map((p) => p.agent.nextDeadline()),
      ];
      const next = Math.min(...times);
      if (next === Infinity || next > stop) {
        if (stop !== Infinity) this.now = Math.max(this.now, stop);
        return;
      }
      this.now = Math.max(this.now, next);
      this.#actions.sort((a, b) => a.at - b.at || a.order - b.order);
      for (let action = this.#actions[0]; action !== undefined && action.at <= this.now; action = this.#actions[0]) {
        this.#actions.shift();
        action.run();
      }
      this.#packets.sort((a, b) => a.at - b.at || a.order - b.order);
      for (let packet = this.#packets[0]; packet !== undefined && packet.at <= this.now; packet = this.#packets[0]) {
        this.#packets.shift();
        packet.to.agent.receive(
          packet.data,
          { transport: packet.transport, host: packet.from.host, port: 5060, flow: 1 },
          this.now,
        );
        this.#collect();
      }
      for (const party of this.#parties) party.agent.advance(this.now);
    }
    throw new Error('the network never came to rest');
  }

  #collect(): void {
    for (let again = true; again; ) {
      again = false;
      for (const party of this.#parties) {
        for (const output of party.agent.take()) {
          again = true;
          party.outputs.push(output);
          if (output.type === 'send') this.#send(party, output.peer, output.bytes);
          else if (output.type === 'invite') {
            party.invited.push(output.call);
            party.react(output.call, { type: 'invite' });
          } else if (output.type === 'call') {
            const list = party.events.get(output.call) ?? [];
            list.push(output.event);
            party.events.set(output.call, list);
            party.react(output.call, output.event);
          }
        }
      }
    }
  }

  #send(from: Party, peer: Peer, data: Uint8Array): void {
    const message = text(data);
    this.wire.push({ from: from.host, line: message.slice(0, message.indexOf('\r\n')), data: message, at: this.now });
    const to = this.#parties.find((party) => party.host === peer.host);
    if (to === undefined || this.eat(from, message)) return;
    const { loss, duplicate, delayMs } = this.#weather;
    const copies = this.#random() < duplicate ? 2 : 1;
    for (let i = 0; i < copies; i++) {
      if (peer.transport === 'udp' && this.#random() < loss) continue;
      const delay = peer.transport === 'udp' ? Math.floor(this.#random() * delayMs) : 0;
      this.#packets.push({ at: this.now + 1 + delay, order: this.#order++, to, from, data, transport: peer.transport });
    }
  }
}

export const peerOf = (party: Party, transport: TransportName = 'udp'): Peer => ({
  transport,
  host: party.host,
  port: 5060,
  flow: 1,
});

export function dial(
  network: Network,
  from: Party,
  to: Party,
  more: { transport?: TransportName; fields?: [string, string][]; credentials?: { username: string; password: string } } = {},
): Call {
  const call = from.agent.invite(
    {
      peer: peerOf(to, more.transport),
      uri: `sip:+15550100@${to.host}`,
      from: `<sip:+15550199@${from.host}>`,
      to: `<sip:+15550100@${to.host}>`,
      body: bytes('v=0 offer'),
      credentials: more.credentials,
      fields: more.fields ?? [],
    },
    network.now,
  );
  if (call === undefined) throw new Error('no call');
  return call;
}
