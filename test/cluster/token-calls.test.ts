/** The live calls of a browser's token over two nodes: the real door of each, with no bus between them but calls. */
import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WebrtcToken } from '../../src/call/ports/webrtc.ts';
import type { Bus } from '../../src/cluster/bus/bus.ts';
import { SharedBrowserCalls } from '../../src/cluster/peer/browser-calls.ts';
import { WEBRTC_SESSIONS_PER_TOKEN_MAX } from '../../src/limits.ts';
import { problems } from '../../src/problem.ts';
import { WebrtcDoor } from '../../src/webrtc/browser-calls.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const OFFER = readFileSync(join(import.meta.dir, '../sdp/offer/chromium-audio.sdp'));
const TOKEN: WebrtcToken = { tokenId: 'token', appUuid: 'app', callerId: '', did: '', clientState: '' };
const FULL = problems.conflict(`The token has ${WEBRTC_SESSIONS_PER_TOKEN_MAX} live Sessions`);
const NO_MEDIA = problems.unavailable('No media is free. See Retry-After header.', 1);

type Answerer = Parameters<Bus['answer']>[1];

/** Makes two nodes, whose calls wait for their media until `giveUp`. The other answers a node where that `hears`. */
function nodes(hears: (nodeId: string) => boolean = () => true) {
  const clock = new VirtualClock();
  const answerers = new Map<string, Answerer>();
  const waiting: (() => void)[] = [];
  const node = (nodeId: string, other: string) =>
    new SharedBrowserCalls({
      bus: {
        answer: (kind, answer) => void answerers.set(`${nodeId} ${kind}`, answer),
        ask: async (to, kind, body) =>
          hears(nodeId)
            ? { outcome: 'answered', body: await answerers.get(`${to} ${kind}`)?.(body, nodeId) }
            : { outcome: 'unknown' },
      },
      nodeId,
      clock,
      here: new WebrtcDoor({
        media: {
          webrtc: { port: 3478, fingerprint: '' },
          openWebrtcLeg: () => new Promise((resolve) => waiting.push(() => resolve(undefined))),
        },
        hosts: [],
        codecs: ['PCMU'],
        clock,
        onCall: async () => undefined,
        hangUpLost: async () => false,
      }),
      others: () => [other],
      owner: async () => undefined,
    });
  const [a, b] = [node('a', 'b'), node('b', 'a')];
  /** Begins calls at these nodes at once, and gives what was refused. */
  const begin = async (at: readonly SharedBrowserCalls[]) => {
    const refused: unknown[] = [];
    for (const calls of at) void calls.create(TOKEN, OFFER).then((outcome) => refused.push(outcome));
    await new Promise((resolve) => setImmediate(resolve));
    return refused;
  };
  const giveUp = async () => {
    for (const done of waiting.splice(0)) done();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { a, b, begin, giveUp, waiting, answerers };
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

describe('a token in a cluster', () => {
  test('has ten live calls at all nodes together, and more when some are over', async () => {
    const { a, b, begin, giveUp, waiting } = nodes();
    expect(await begin(times(6, a))).toEqual([]);
    expect(await begin(times(4, b))).toEqual([]);
    expect(await begin([a, b])).toEqual([FULL, FULL]);
    await giveUp();
    expect(await begin(times(10, b))).toEqual([]);
    expect(waiting.length).toBe(WEBRTC_SESSIONS_PER_TOKEN_MAX);
  });

  test('has no eleventh where the last places are taken at both nodes at the same time', async () => {
    const { a, b, begin, waiting } = nodes();
    await begin([...times(4, a), ...times(4, b)]);
    const refused = await begin([a, b, a, b]);
    expect(waiting.length).toBeLessThanOrEqual(WEBRTC_SESSIONS_PER_TOKEN_MAX);
    expect(refused).toEqual(times(12 - waiting.length, FULL));
    // What was refused takes no place.
    await begin(times(WEBRTC_SESSIONS_PER_TOKEN_MAX, a));
    expect(waiting.length).toBe(WEBRTC_SESSIONS_PER_TOKEN_MAX);
  });

  test('has those of one node alone where the other does not answer, or is of another release', async () => {
    for (const isAway of [true, false]) {
      const { a, b, begin, waiting, answerers } = nodes((nodeId) => nodeId !== 'a' || !isAway);
      await begin(times(3, b));
      if (!isAway) answerers.delete('b whip_live');
      expect(await begin(times(11, a))).toEqual([FULL]);
      expect(waiting.length).toBe(13);
    }
  });

  test('gives the place of a call back that has no media', async () => {
    const { a, begin, giveUp } = nodes();
    const first = a.create(TOKEN, OFFER);
    await begin([]);
    await giveUp();
    expect(await first).toMatchObject({ status: NO_MEDIA.status });
    expect(await begin(times(10, a))).toEqual([]);
  });
});
