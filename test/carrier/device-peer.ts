/** A device that is written by hand: it answers the challenges of the platform. */
import { hexHash } from '../../src/hash.ts';
import { authorization, challengesOf } from '../../src/sip/message/digest.ts';
import { Headers, NO_BODY } from '../../src/sip/message/message.ts';
import type { RawPeer } from './raw-peer.ts';

/** The Authorization that answers a 401. */
export function answerTo(
  challenge: string,
  method: string,
  uri: string,
  username: string,
  password = `${username}'s secret`,
  nonceCount = 1,
): string {
  const headers = new Headers();
  for (const [, value] of challenge.matchAll(/^WWW-Authenticate: ([^\r]*)/gim)) headers.add('www-authenticate', value ?? '');
  const [found] = challengesOf({ kind: 'response', status: 401, reason: '', headers, body: NO_BODY });
  if (found === undefined) throw new Error(`no challenge in ${challenge}`);
  return `Authorization: ${authorization(hexHash, found, { username, password }, { method, uri, nonceCount, cnonce: 'c', body: NO_BODY })}\r\n`;
}

let calls = 0;

/** Sends a request of a user, answers the challenge, and gives the response to that. */
export async function asUser(
  peer: RawPeer,
  method: string,
  username: string,
  more: Parameters<RawPeer['request']>[1] & { password?: string } = {},
) {
  const id = `device${++calls}`;
  const from = `<sip:${username}@x>;tag=${id}`;
  const parts = { id, from, ...(method === 'REGISTER' ? { to: `<sip:${username}@x>` } : {}), ...more };
  peer.send(peer.request(method, parts));
  const challenge = await peer.until(/^SIP\/2.0 401/);
  const uri = `${parts.scheme ?? 'sip'}:${parts.number ?? '+15550002'}@127.0.0.1`;
  const fields = `${more.fields ?? ''}${answerTo(challenge, method, uri, username, more.password)}`;
  peer.send(peer.request(method, { ...parts, cseq: 2, fields }));
  return { response: await peer.until(/^SIP\/2.0 [2-6]/), parts };
}
