/**
 * Runs the user agent on a clock and sockets: it feeds it the messages that arrive, carries out its outputs and wakes
 * it when a timer is due.
 */
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { Call } from '../sip/call/call.ts';
import type { CallEvent } from '../sip/call/call-event.ts';
import type { Peer } from '../sip/flow.ts';
import type { Arrival, UserAgent } from '../sip/user-agent.ts';
import type { UserAgentOutput } from '../sip/user-agent-output.ts';
import type { Listener } from './socket/listener.ts';

interface AgentListener {
  onInvite(output: Extract<UserAgentOutput, { type: 'invite' }>): void;
  onRefused(output: Extract<UserAgentOutput, { type: 'refused' }>): void;
  onProbed(output: Extract<UserAgentOutput, { type: 'probed' }>): void;
  /** A message came in, or is about to go out. */
  onMessage(direction: 'in' | 'out', bytes: Uint8Array, peer: Peer): void;
  /** A message is to go out where another node received what it answers. */
  onVia(nodeId: string, bytes: Uint8Array, peer: Peer): void;
}

export class AgentDriver {
  readonly agent: UserAgent;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #listener: AgentListener;
  readonly #calls = new Map<Call, (event: CallEvent) => void>();
  #sockets: Listener | undefined;
  #working = false;
  #armedAt = Infinity;
  #disarm: () => void = () => {};
  #closed = false;

  constructor(agent: UserAgent, clock: Clock, log: Log, listener: AgentListener) {
    this.agent = agent;
    this.#clock = clock;
    this.#log = log;
    this.#listener = listener;
  }

  /** Names the sockets to send on. Nothing can come in before they exist. */
  attach(sockets: Listener): void {
    this.#sockets = sockets;
  }

  /** Takes a message. */
  receive(bytes: Uint8Array, source: Peer, arrival: Arrival = {}): void {
    this.#guard('a SIP message could not be worked on', () => {
      this.#listener.onMessage('in', bytes, source);
      this.run((now) => this.agent.receive(bytes, source, now, arrival));
    });
  }

  /** Names the listener to the events of a call. It is forgotten after `ended`. */
  listen(call: Call, listener: (event: CallEvent) => void): void {
    this.#calls.set(call, listener);
  }

  /** Lets a call go that goes on elsewhere: nothing more is told of it. */
  abandon(call: Call): void {
    this.run(() => call.abandon());
    this.#calls.delete(call);
  }

  /**
   * Does something with the user agent, then carries out its outputs. May be called from within. Undefined when the
   * driver is closed.
   */
  run<T>(work: (now: number) => T): T | undefined {
    if (this.#closed) return undefined;
    try {
      return work(this.#clock.now());
    } finally {
      if (!this.#working) this.#carryOut();
    }
  }

  /** The time, in ms since the epoch. */
  get now(): number {
    return this.#clock.now();
  }

  close(): void {
    this.#closed = true;
    this.#disarm();
  }

  #carryOut(): void {
    this.#working = true;
    try {
      for (let outputs = this.agent.take(); outputs.length > 0; outputs = this.agent.take()) {
        for (const output of outputs) this.#guard('an outcome of SIP could not be carried out', () => this.#perform(output));
      }
    } finally {
      this.#working = false;
    }
    this.#arm();
  }

  /** Does something for one call. Its bug is not another's: it is told in the log, and all else goes on. */
  #guard(message: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#log.error({ error: error instanceof Error ? (error.stack ?? error.message) : 'unknown' }, message);
    }
  }

  #perform(output: UserAgentOutput): void {
    switch (output.type) {
      case 'send': {
        const { ticket } = output;
        this.#listener.onMessage('out', output.bytes, output.peer);
        if (output.peer.via !== undefined) {
          this.#listener.onVia(output.peer.via, output.bytes, output.peer);
          return;
        }
        this.#sockets?.send(output.bytes, output.peer, (why) => {
          if (ticket !== '') this.run((now) => this.agent.sendFailed(ticket, now, why));
        });
        return;
      }
      case 'call': {
        const listener = this.#calls.get(output.call);
        if (output.event.type === 'ended') this.#calls.delete(output.call);
        listener?.(output.event);
        return;
      }
      case 'invite':
        this.#listener.onInvite(output);
        return;
      case 'refused':
        this.#listener.onRefused(output);
        return;
      case 'registration':
        this.#log[output.state === 'registered' ? 'info' : 'warn'](
          { trunk: output.name, state: output.state, status: output.status },
          'registration',
        );
        return;
      case 'probed':
        this.#listener.onProbed(output);
    }
  }

  /** Moves the timer nearer, never further away: a timer that fires early finds nothing due and is set again. */
  #arm(): void {
    const next = this.agent.nextDeadline();
    if (next >= this.#armedAt || this.#closed) return;
    this.#disarm();
    this.#armedAt = next;
    this.#disarm = this.#clock.at(next, () => {
      this.#armedAt = Infinity;
      this.#guard('a timer of SIP could not be worked on', () => this.run((now) => this.agent.advance(now)));
    });
  }
}
