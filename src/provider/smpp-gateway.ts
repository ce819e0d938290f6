/**
 * Short messages over SMPP 3.4: one transceiver, bound again with growing pauses whenever it is lost. What was written
 * and not answered is reported as `unknown`: the protocol has no way to ask.
 */
import { withTimeLimit } from '../bounds/time-limit.ts';
import { type Clock, sleep } from '../clock.ts';
import type { Config } from '../config.ts';
import { newUuid } from '../id.ts';
import { SMPP_ENQUIRE_LINK_MS, SMPP_LAST_RESPONSES_MS, SMPP_RECONNECT_MS } from '../limits.ts';
import type { Log } from '../log.ts';
import type { CarrierLink, PartOutcome, SmsGateway, SmsListener, Submission, Submitted } from '../machine/message/gateway.ts';
import { concatenationHeader, segment } from '../machine/message/segments.ts';
import { SmppConnection, SmppLost } from './smpp-connection.ts';
import type { Pdu } from './smpp-pdu.ts';
import { ESME_RINVBNDSTS, ESME_RINVDSTADR, ESME_RX_T_APPN, isThrottled, refusalOf } from './smpp-status.ts';
import { DATA_CODING, ESM_UDHI, incomingIn, receiptIn, textOf } from './smpp-text.ts';

type SmppSettings = Extract<Config['smsProvider'], { kind: 'smpp' }>;

/** SMPP 3.4 §5.2.5, §5.2.6: international, E.164. */
const INTERNATIONAL = 1;
const ISDN = 1;
const INTERFACE_VERSION = 0x34;
/** Nothing is submitted for this long after the SMSC said that it is too much. */
const THROTTLE_PAUSE_MS = 500;
const UNBIND_WAIT_MS = 1_000;

export class SmppGateway implements SmsGateway {
  readonly window: number;
  readonly #settings: SmppSettings;
  readonly #clock: Clock;
  readonly #log: Log;
  #listener: SmsListener | undefined;
  #connection: SmppConnection | undefined;
  #bound = false;
  #resting = true;
  /**
   * Losses in a row of links that were of no use. Each costs what was under way on it, so that a bind alone does not
   * count as the end of the trouble.
   */
  #failures = 0;
  /** When the link was bound, in ms since the epoch. */
  #boundAt: number | undefined;
  /** When the link before it ended, in ms since the epoch. */
  #lostAt: number | undefined;
  /** What comes names its link, also before the response to the bind is read. */
  #link: CarrierLink = { id: '', since: 0 };
  #pausedUntil = 0;
  /** When the next part may be submitted, in ms since the epoch. */
  #nextTurnAt = 0;
  /** Submissions that the SMSC has not answered. */
  readonly #unanswered = new Set<Promise<Pdu>>();
  #cancelReconnect: (() => void) | undefined;
  #cancelPause: (() => void) | undefined;

  constructor(settings: SmppSettings, clock: Clock, log: Log) {
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    // What the gateway holds at a time leaves within a second or so, long messages aside.
    this.window = Math.min(settings.window, settings.ratePerSec ?? settings.window);
  }

  partsOf(segments: number): number {
    return this.#settings.longMessages === 'payload' ? 1 : segments;
  }

  start(listener: SmsListener): void {
    this.#listener = listener;
    if (!this.#resting) return;
    this.#resting = false;
    this.#failures = 0;
    this.#boundAt = undefined;
    this.#connect();
  }

  ready(): boolean {
    return this.#bound && this.#clock.now() >= this.#pausedUntil;
  }

  async submit(submission: Submission): Promise<readonly Submitted[]> {
    const outcomes: Submitted[] = [];
    for (const part of submission.parts) {
      const outcome = await this.#submitPart(submission, part);
      outcomes.push({ part, outcome });
      if (outcome.outcome !== 'accepted') break;
    }
    return outcomes;
  }

  async #submitPart(submission: Submission, part: number): Promise<PartOutcome> {
    await this.#turn();
    const connection = this.#connection;
    if (connection === undefined || !this.#bound) return { outcome: 'later' };
    try {
      const response = await this.#response(connection.request('submit_sm', this.#submitSm(submission, part)));
      const status = response.command_status;
      if (status === ESME_RINVBNDSTS) void this.#bindAnew(connection);
      else this.#failures = 0;
      if (isThrottled(status)) this.#pause();
      if (status !== 0) return refusalOf(status);
      const given = textOf(response.message_id);
      // An SMSC that names nothing sends no receipts either: the part still has to be told from one that was not
      // accepted.
      return { outcome: 'accepted', smscId: given === '' ? `unnamed ${submission.messageUuid} ${part}` : given };
    } catch (error) {
      if (error instanceof SmppLost) return { outcome: error.sent ? 'unknown' : 'later' };
      throw error;
    }
  }

  /** The response to a submission, which is known to be under way until it comes. */
  async #response(request: Promise<Pdu>): Promise<Pdu> {
    this.#unanswered.add(request);
    try {
      return await request;
    } finally {
      this.#unanswered.delete(request);
    }
  }

  /**
   * Waits for the turn of one part: they leave evenly, at most `ratePerSec` a second, and none during a pause, also
   * where the ones before it of its message have left.
   */
  async #turn(): Promise<void> {
    const { ratePerSec } = this.#settings;
    do {
      const now = this.#clock.now();
      const at = Math.max(now, this.#pausedUntil, this.#nextTurnAt);
      if (ratePerSec !== undefined) this.#nextTurnAt = at + 1000 / ratePerSec;
      if (at > now) await sleep(this.#clock, at - now);
    } while (this.#clock.now() < this.#pausedUntil);
  }

  #submitSm({ messageUuid, from, to, text, total }: Submission, part: number): Readonly<Record<string, unknown>> {
    const { encoding, segments } = segment(text);
    const addressed = {
      source_addr_ton: INTERNATIONAL,
      source_addr_npi: ISDN,
      source_addr: from.replace('+', ''),
      dest_addr_ton: INTERNATIONAL,
      dest_addr_npi: ISDN,
      destination_addr: to.replace('+', ''),
      registered_delivery: 1,
      data_coding: DATA_CODING[encoding],
    };
    const octets = segments[part] ?? new Uint8Array(0);
    if (segments.length === 1) return { ...addressed, short_message: Buffer.from(octets) };
    if (total === 1) return { ...addressed, short_message: Buffer.alloc(0), message_payload: Buffer.concat(segments) };
    // The same for every part and every attempt, and rarely that of another message to the same number.
    const reference = Number.parseInt(messageUuid.slice(0, 2), 16);
    const header = concatenationHeader(reference, segments.length, part + 1);
    return { ...addressed, esm_class: ESM_UDHI, short_message: Buffer.concat([header, octets]) };
  }

  #connect(): void {
    if (this.#resting) return;
    const { host, port } = this.#settings;
    const connection = new SmppConnection(
      {
        host,
        port,
        clock: this.#clock,
        onRequest: (pdu) => this.#onRequest(connection, pdu),
        onLeaving: () => {
          if (this.#connection === connection) this.#bound = false;
        },
        onClose: (reason) => this.#onClose(connection, reason),
      },
      () => void this.#bind(connection),
    );
    this.#connection = connection;
    this.#link = { id: newUuid(), since: this.#lostAt ?? this.#clock.now() };
  }

  async #bind(connection: SmppConnection): Promise<void> {
    const { systemId, password, systemType } = this.#settings;
    try {
      const response = await connection.request('bind_transceiver', {
        system_id: systemId,
        password,
        system_type: systemType,
        interface_version: INTERFACE_VERSION,
      });
      if (response.command_status !== 0) {
        this.#log.error({ command_status: response.command_status }, 'the SMSC refused the bind');
        connection.close('bind refused');
        return;
      }
      // What came in the same packet has ended the connection.
      if (this.#connection !== connection) return;
      this.#bound = true;
      this.#boundAt = this.#clock.now();
      this.#log.info({ host: this.#settings.host }, 'bound to the SMSC');
      this.#listener?.onReady();
    } catch (error) {
      // `onClose` has been told.
      if (!(error instanceof SmppLost)) throw error;
    }
  }

  /**
   * Leaves a connection on which the SMSC takes nothing because it knows of no bind, although it answered one: only
   * another bind helps. What is under way is let be answered.
   */
  async #bindAnew(connection: SmppConnection): Promise<void> {
    if (this.#connection !== connection || !this.#bound) return;
    this.#bound = false;
    const answered = Promise.allSettled([...this.#unanswered]).then(() => {});
    await withTimeLimit(answered, SMPP_LAST_RESPONSES_MS, () => {}, this.#clock);
    connection.close('not bound, says the SMSC');
  }

  #onClose(connection: SmppConnection, reason: string): void {
    // One that was let go is nobody's loss.
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#bound = false;
    const now = this.#clock.now();
    if (this.#boundAt !== undefined) this.#lostAt = now;
    if (this.#boundAt !== undefined && now - this.#boundAt >= SMPP_ENQUIRE_LINK_MS) this.#failures = 0;
    this.#boundAt = undefined;
    const waitMs = SMPP_RECONNECT_MS[Math.min(this.#failures, SMPP_RECONNECT_MS.length - 1)] ?? 0;
    this.#failures++;
    this.#log.warn({ reason, retry_ms: waitMs }, 'the connection to the SMSC was lost');
    this.#cancelReconnect = this.#clock.at(now + waitMs, () => this.#connect());
  }

  #pause(): void {
    this.#pausedUntil = this.#clock.now() + THROTTLE_PAUSE_MS;
    this.#cancelPause?.();
    this.#cancelPause = this.#clock.at(this.#pausedUntil, () => this.#listener?.onReady());
  }

  /** What comes is acknowledged once it is durable; what could not be stored is asked for again. */
  #onRequest(connection: SmppConnection, pdu: Pdu): void {
    if (pdu.command !== 'deliver_sm' && pdu.command !== 'data_sm') {
      connection.answer(pdu, { command_status: 0x03 });
      return;
    }
    this.#taken(pdu).then(
      (command_status) => connection.answer(pdu, { command_status }),
      () => connection.answer(pdu, { command_status: ESME_RX_T_APPN }),
    );
  }

  /** Resolves with the status to answer once what the PDU says is durable. */
  async #taken(pdu: Pdu): Promise<number> {
    const link = this.#link;
    const receipt = receiptIn(pdu);
    if (receipt !== undefined) await this.#listener?.onReceipt(receipt);
    const part = receipt === undefined ? incomingIn(pdu) : undefined;
    if (part === undefined) return 0;
    return (await this.#listener?.onMessage(part, link)) === false ? ESME_RINVDSTADR : 0;
  }

  /**
   * Submits nothing more, waits for the responses that are under way, and unbinds. A submission whose response is not
   * waited for would be told as failed although the SMSC may have it.
   */
  async rest(): Promise<void> {
    this.#resting = true;
    this.#cancelReconnect?.();
    this.#cancelPause?.();
    const connection = this.#connection;
    const wasBound = this.#bound || this.#unanswered.size > 0;
    if (this.#bound) this.#lostAt = this.#clock.now();
    this.#connection = undefined;
    this.#bound = false;
    if (connection === undefined) return;
    if (wasBound) {
      const answered = Promise.allSettled([...this.#unanswered]).then(() => {});
      await withTimeLimit(answered, SMPP_LAST_RESPONSES_MS, () => {}, this.#clock);
      const unbound = connection.request('unbind', {}).then(
        () => {},
        () => {},
      );
      await withTimeLimit(unbound, UNBIND_WAIT_MS, () => {}, this.#clock);
    }
    connection.close('closed');
  }

  close(): Promise<void> {
    return this.rest();
  }
}
