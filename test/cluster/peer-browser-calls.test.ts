/** PATCH and DELETE of a browser's call that come to another node, with no bus between the two but calls. */
import { expect, test } from 'bun:test';
import type { BrowserCalls, WebrtcToken, WhipChange } from '../../src/call/ports/webrtc.ts';
import type { Bus } from '../../src/cluster/bus/bus.ts';
import { SharedBrowserCalls } from '../../src/cluster/peer/browser-calls.ts';
import { problems } from '../../src/problem.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const TOKEN: WebrtcToken = { tokenId: 'token', appUuid: 'app', callerId: '', did: '', clientState: '' };
const CHANGE: WhipChange = { kind: 'fragment', body: Buffer.from('a=ice-ufrag:x\r\n'), ifMatch: '"1"' };
const REFUSED = problems.invalid('body: of no use');
const AWAY = problems.nodeAway('this call');

/** Node `a`, and `b`, which has the Session `there`. What its calls are asked is kept. */
function nodes(answered: Partial<BrowserCalls> = {}, reach: 'answers' | 'late' | 'silent' = 'answers') {
  const clock = new VirtualClock();
  const answerers = new Map<string, Parameters<Bus['answer']>[1]>();
  const asked: unknown[] = [];
  const node = (nodeId: string) =>
    new SharedBrowserCalls({
      bus: {
        answer: (kind, answer) => void answerers.set(`${nodeId} ${kind}`, answer),
        ask: async (to, kind, body, timeoutMs, deadlineMs) => {
          expect(deadlineMs).toBeLessThan(timeoutMs);
          if (reach === 'silent') return { outcome: 'unknown' };
          const until = clock.now() + (reach === 'late' ? 0 : deadlineMs);
          return { outcome: 'answered', body: await answerers.get(`${to} ${kind}`)?.({ ...body, until }, nodeId) };
        },
      },
      nodeId,
      clock,
      here: {
        create: async () => AWAY,
        liveOf: () => 0,
        patch: async (token, sessionUuid, change) => {
          asked.push([nodeId, token, sessionUuid, { ...change, body: Buffer.from(change.body).toString() }]);
          return await answered.patch?.(token, sessionUuid, change);
        },
        hangUp: async (token, sessionUuid) => {
          asked.push([nodeId, token, sessionUuid]);
          return (await answered.hangUp?.(token, sessionUuid)) ?? true;
        },
      },
      others: () => [],
      owner: async (_appUuid, sessionUuid) => ({ here: 'a', there: 'b' })[sessionUuid],
    });
  const [a] = [node('a'), node('b')];
  const both = async (sessionUuid: string) => [await a.patch(TOKEN, sessionUuid, CHANGE), await a.hangUp(TOKEN, sessionUuid)];
  return { both, asked, answerers };
}

test('A change and an end of a call go to the node that has it, and what that says comes back', async () => {
  for (const [sessionUuid, nodeId] of [
    ['there', 'b'],
    ['here', 'a'],
    ['nowhere', 'a'],
  ] as const)
    for (const [patched, wasThere] of [
      [{ etag: '"2"', fragment: 'a=x' }, true],
      [undefined, false],
      [REFUSED, REFUSED],
    ] as const) {
      const { both, asked } = nodes({ patch: async () => patched, hangUp: async () => wasThere });
      expect(await both(sessionUuid)).toEqual([patched, wasThere]);
      const change = { ...CHANGE, body: Buffer.from(CHANGE.body).toString() };
      expect(asked).toEqual([
        [nodeId, TOKEN, sessionUuid, change],
        [nodeId, TOKEN, sessionUuid],
      ]);
    }
});

test('A call whose node does not answer, or hears of it too late, is away, and nothing is done to it', async () => {
  for (const reach of ['silent', 'late'] as const) {
    const { both, asked } = nodes({}, reach);
    expect([await both('there'), asked]).toEqual([[AWAY, AWAY], []]);
  }
});

test('An answer of another release is none', async () => {
  const { both, answerers } = nodes();
  for (const body of [null, 'text', {}]) {
    answerers.set('b whip', () => body);
    expect(await both('there')).toEqual([AWAY, AWAY]);
  }
});
