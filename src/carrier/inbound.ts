/**
 * Decides about a call from a carrier: whether its source is a trunk of ours, and which application its number belongs
 * to.
 */
import { isIP } from 'node:net';
import { detached } from '../bounds/detached.ts';
import type { Device } from '../call/ports/devices.ts';
import type { IncomingCall } from '../call/ports/leg.ts';
import { SIP_RETRY_AFTER_SEC } from '../limits.ts';
import type { Log } from '../log.ts';
import { isRefused, Negotiation } from '../sdp/negotiation.ts';
import type { Call } from '../sip/call/call.ts';
import type { CallEvent } from '../sip/call/call-event.ts';
import type { Peer } from '../sip/flow.ts';
import type { SipRequest } from '../sip/message/message.ts';
import { parseUri } from '../sip/message/uri.ts';
import { seenByProxies } from '../sip/message/via.ts';
import { DEVICE_TRUNK } from './device/device-trunk.ts';
import { calledNumbers, callerId } from './leg/identity.ts';
import { InboundLeg } from './leg/inbound-leg.ts';
import { canDescribe, type PhoneLegOptions } from './leg/phone-leg.ts';
import { namesIn } from './leg/sdp-names.ts';
import { sipFacts } from './leg/sip-facts.ts';
import {
  BROKEN_OFFER,
  ENCRYPTED,
  ENCRYPTED_OF_DEVICE,
  LOOKUP_FAILED,
  NO_AUDIO_OF_DEVICE,
  NO_CHANNEL,
  NO_COMMON_AUDIO,
  NO_NUMBER,
  NO_PORT,
  NO_ROOM,
  NO_SRTP,
  NOT_ENCRYPTED,
  NOT_TAKEN,
  notAssigned,
  unknownSource,
  type Why,
} from './refusals.ts';
import type { Trunk } from './trunk/trunk.ts';

/**
 * The header field that asks a caller who was refused to come again. It is left out where the platform is only full:
 * some carriers stay away for as long as it says, with the calls of all numbers.
 */
const RETRY_LATER = [['retry-after', String(SIP_RETRY_AFTER_SEC)]] as const;

export interface InboundOptions {
  readonly log: Log;
  /** The application of a number. Rejects when the database cannot tell. */
  numberOwner(e164: string): Promise<string | undefined>;
  /** The trunk that an INVITE came over. Undefined when it came over none. */
  trunkOf(request: SipRequest, address: string): Trunk | undefined;
  /** Asks other nodes for a channel, where they share those of the trunk. Call its result once it was taken or not. */
  expect(trunk: Trunk): Promise<() => void>;
  /** Takes a channel of the trunk. Undefined when all are in use. */
  reserve(trunk: Trunk, source: Peer): PhoneLegOptions | undefined;
  /** The device that an INVITE is from, if it is from one. It has proved that. */
  deviceOf(request: SipRequest): Device | undefined;
  /** The terms of a call from a device. Undefined when the RTP ports are used up. */
  deviceLeg(source: Peer): PhoneLegOptions | undefined;
  onInvite(call: IncomingCall & { readonly trunk: string }): unknown;
}

/** One INVITE, and how to act on its call. */
export interface Invite {
  readonly call: Call;
  readonly request: SipRequest;
  readonly source: Peer;
  refuse(status: number, why: Why, fields?: readonly (readonly [string, string])[]): void;
  listen(listener: (event: CallEvent) => void): void;
}

/** Decides about one INVITE: refuses it, or hands it to its application. */
export async function admitInvite(options: InboundOptions, invite: Invite): Promise<void> {
  const { request, source, refuse } = invite;
  // The caller may give up while the number is looked up.
  let gone = false;
  invite.listen((event) => {
    gone ||= event.type === 'ended';
  });
  const device = options.deviceOf(request);
  if (device !== undefined) {
    await admitDevice(options, invite, device);
    return;
  }
  const trunk = options.trunkOf(request, source.host);
  if (trunk === undefined) {
    refuse(403, unknownSource(source.host));
    return;
  }
  const numbers = calledNumbers(request, trunk);
  const owner = await ownerOf(options, trunk, numbers);
  if (gone) return;
  if (owner === 'unknown') {
    refuse(503, LOOKUP_FAILED, RETRY_LATER);
    return;
  }
  if (owner === undefined) {
    refuse(404, numbers[0] === undefined ? NO_NUMBER : notAssigned(numbers[0]));
    return;
  }
  const stopExpecting = await options.expect(trunk);
  const leg = gone ? undefined : options.reserve(trunk, source);
  stopExpecting();
  if (gone) return;
  if (leg === undefined) {
    refuse(503, NO_CHANNEL);
    return;
  }
  await handOver(options, invite, leg, noAudioOfTrunk, (codec) => ({
    callerId: detached(callerId(request, trunk)),
    ...owner,
    trunk: trunk.name,
    sip: sipFacts(request.headers, trunk.name, codec),
  }));
}

/** Takes a call of a device for its application. What it has dialled is the application's business. */
async function admitDevice(options: InboundOptions, invite: Invite, device: Device): Promise<void> {
  const { request, source, refuse } = invite;
  const leg = options.deviceLeg(source);
  if (leg === undefined) {
    refuse(503, NO_PORT);
    return;
  }
  // The audio comes from where a proxy before the device saw it, unless the proxy relays that.
  const seen = seenByProxies(request.headers.list('via')).filter((host) => isIP(host) !== 0);
  const terms = { ...leg, rtpSources: () => [...leg.rtpSources(), ...seen] };
  await handOver(options, invite, terms, noAudioOfDevice, (codec) => ({
    type: 'sip',
    trunk: '',
    appUuid: device.appUuid,
    callerId: detached(callerId(request, DEVICE_TRUNK)),
    did: detached(calledNumbers(request, DEVICE_TRUNK)[0] ?? ''),
    sip: sipFacts(request.headers, '', codec, { device: device.username, dialled: parseUri(request.uri)?.user ?? '' }),
  }));
}

/** Gives a call to its application, unless its offer has no audio that we can take; `noAudio` tells why then. */
async function handOver(
  options: InboundOptions,
  { call, request, refuse, listen }: Invite,
  leg: PhoneLegOptions,
  noAudio: (offer: Uint8Array, leg: PhoneLegOptions) => Why,
  about: (codec: string | undefined) => Omit<IncomingCall, 'leg' | 'refuse' | 'listen'> & { readonly trunk: string },
): Promise<void> {
  const answer = answerTo(request.body, leg);
  if (typeof answer === 'number') {
    leg.onEnded();
    refuse(answer, answer === 400 ? BROKEN_OFFER : noAudio(request.body, leg));
    return;
  }
  const inbound = new InboundLeg(leg, call, request);
  listen(eventsOf(inbound));
  await options.onInvite({
    ...about(answer),
    leg: inbound,
    refuse: (why) => (why === 'full' ? refuse(503, NO_ROOM) : refuse(503, NOT_TAKEN, RETRY_LATER)),
    listen: (listener) => inbound.listen(listener),
  });
}

/** A function of its own, so that what listens for as long as the call holds the leg and nothing of the INVITE. */
function eventsOf(leg: InboundLeg): (event: CallEvent) => void {
  return (event) => leg.take(event);
}

/** The application of the first of these numbers that has one. `unknown` when the database cannot tell. */
async function ownerOf(
  options: InboundOptions,
  trunk: Trunk,
  numbers: readonly string[],
): Promise<{ readonly did: string; readonly appUuid: string } | 'unknown' | undefined> {
  try {
    for (const did of numbers) {
      const appUuid = await options.numberOwner(did);
      if (appUuid !== undefined) return { did: detached(did), appUuid };
    }
    return undefined;
  } catch {
    options.log.warn({ trunk: trunk.name }, 'a call was refused: its number could not be looked up');
    return 'unknown';
  }
}

/**
 * The status that refuses an offer before the call is told to anyone, else the codec that it will be answered with.
 * It is undefined without an offer. A name in it may still turn out to have no address.
 */
function answerTo(offer: Uint8Array, leg: PhoneLegOptions): 400 | 488 | string | undefined {
  const { codecs, family, srtp } = leg;
  if (offer.length === 0) return canDescribe(leg) ? undefined : 488;
  const host = family === 6 ? '::1' : '127.0.0.1';
  const addresses = new Map(namesIn(offer).map((name) => [name, host]));
  const terms = { host, hostTowards: (far: string) => leg.sdpHostTowards(far), port: 9, codecs, sessionId: 0 };
  const trial = new Negotiation({ ...terms, ...(srtp === undefined ? {} : { srtp }) }).answer(offer, addresses);
  return isRefused(trial) ? trial.refused : trial.agreement.codec;
}

/** Why none of the streams of a carrier's offer can be taken. */
function noAudioOfTrunk(offer: Uint8Array, leg: PhoneLegOptions): Why {
  if (leg.srtp?.mode === 'required') return leg.srtp.suites.length === 0 ? NO_SRTP : NOT_ENCRYPTED;
  return isTooEncrypted(offer, leg) ? ENCRYPTED : NO_COMMON_AUDIO;
}

/** Why none of the streams of a device's offer can be taken. No setting of the operator's changes that. */
const noAudioOfDevice = (offer: Uint8Array, leg: PhoneLegOptions): Why =>
  isTooEncrypted(offer, leg) ? ENCRYPTED_OF_DEVICE : NO_AUDIO_OF_DEVICE;

/** Tells whether an offer has encrypted audio, of which the leg takes none. */
const isTooEncrypted = (offer: Uint8Array, { srtp }: PhoneLegOptions): boolean =>
  srtp === undefined && new TextDecoder().decode(offer).includes('RTP/SAVP');
