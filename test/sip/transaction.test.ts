/** The four transactions of RFC 3261 §17 and RFC 6026, each as the times at which it does something. */
import { describe, expect, test } from 'bun:test';
import { SIP_PROCEEDING_MAX_MS } from '../../src/limits.ts';
import {
  type InviteClientInput,
  inviteClientDeadline,
  startInviteClient,
  stepInviteClient,
} from '../../src/sip/transaction/invite-client.ts';
import {
  type InviteServerInput,
  inviteServerDeadline,
  startInviteServer,
  stepInviteServer,
} from '../../src/sip/transaction/invite-server.ts';
import {
  nonInviteClientDeadline,
  startNonInviteClient,
  stepNonInviteClient,
} from '../../src/sip/transaction/non-invite-client.ts';
import { startNonInviteServer, stepNonInviteServer } from '../../src/sip/transaction/non-invite-server.ts';

const START = 1_000_000;

/** Runs a machine to its end, with inputs at `[ms, input]`, and tells `ms effects` of each step that has some. */
function live<Input extends string>(
  step: (input: Input | 'clock', now: number) => readonly string[],
  deadline: () => number,
  inputs: readonly (readonly [number, Input])[],
): string[] {
  const told: string[] = [];
  const queue = [...inputs];
  for (let steps = 0; steps < 1_000; steps++) {
    const next = queue[0];
    const at = Math.min(deadline(), START + (next?.[0] ?? Infinity));
    if (at === Infinity) return told;
    const input = next !== undefined && START + next[0] <= at ? next[1] : 'clock';
    if (input !== 'clock') queue.shift();
    const effects = step(input, at);
    if (effects.length > 0) told.push(`${at - START} ${effects.join(', ')}`);
  }
  throw new Error('it never came to rest');
}
type Client = readonly (readonly [number, InviteClientInput])[];
type Server = readonly (readonly [number, InviteServerInput])[];

function inviteClient(reliable: boolean, inputs: Client) {
  const t = startInviteClient(reliable, START);
  const told = live<InviteClientInput>(
    (input, now) => stepInviteClient(t, input, now),
    () => inviteClientDeadline(t),
    inputs,
  );
  return [...told, t.state];
}
function nonInviteClient(reliable: boolean, inputs: Client) {
  const t = startNonInviteClient(reliable, START);
  const told = live<InviteClientInput>(
    (input, now) => stepNonInviteClient(t, input, now),
    () => nonInviteClientDeadline(t),
    inputs,
  );
  return [...told, t.state];
}
function inviteServer(reliable: boolean, inputs: Server) {
  const t = startInviteServer(reliable);
  const told = live<InviteServerInput>(
    (input, now) => stepInviteServer(t, input, now),
    () => inviteServerDeadline(t),
    inputs,
  );
  return [...told, t.state];
}
function nonInviteServer(reliable: boolean, inputs: Server) {
  const t = startNonInviteServer(reliable);
  const told = live<InviteServerInput>(
    (input, now) => stepNonInviteServer(t, input, now),
    () => t.J,
    inputs,
  );
  return [...told, t.state];
}

describe('an INVITE of ours (§17.1.1)', () => {
  test('over UDP is sent again after 0.5, 1, 2, 4, 8 and 16 s more, and given up after 32 s', () => {
    const sent = ['500 send', '1500 send', '3500 send', '7500 send', '15500 send', '31500 send'];
    expect(inviteClient(false, [])).toEqual([...sent, '32000 timeout, done', 'terminated']);
  });

  test('over TCP is sent once, and given up after 32 s', () => {
    expect(inviteClient(true, [])).toEqual(['32000 timeout, done', 'terminated']);
  });

  test('is not sent again after a provisional response, and has its time anew with each of them', () => {
    const last = 100_000;
    expect(
      inviteClient(false, [
        [600, 'provisional'],
        [last, 'provisional'],
      ]),
    ).toEqual(['500 send', '600 pass', `${last} pass`, `${last + SIP_PROCEEDING_MAX_MS} timeout, done`, 'terminated']);
  });

  test('acknowledges a refusal each time it comes, over UDP for 32 s, and tells it once', () => {
    const late: Client = [
      [900, 'failure'],
      [950, 'provisional'],
      [960, 'success'],
      [970, 'unreachable'],
    ];
    expect(inviteClient(false, [[100, 'provisional'], [200, 'failure'], ...late, [32_100, 'failure']])).toEqual([
      '100 pass',
      '200 ack, pass',
      '900 ack again',
      '32100 ack again',
      '32200 done',
      'terminated',
    ]);
    expect(
      inviteClient(true, [
        [200, 'failure'],
        [300, 'failure'],
      ]),
    ).toEqual(['200 ack, pass, done', 'terminated']);
  });

  test('tells a 200 each time it comes for 32 s, and nothing else any more (RFC 6026 §7.2)', () => {
    const late: Client = [
      [700, 'success'],
      [800, 'provisional'],
      [900, 'failure'],
      [950, 'unreachable'],
    ];
    for (const reliable of [false, true])
      expect(inviteClient(reliable, [[200, 'success'], ...late])).toEqual(['200 pass', '700 pass', '32200 done', 'terminated']);
  });

  test('that the transport cannot deliver is over, before and after a provisional response', () => {
    expect(
      inviteClient(true, [
        [100, 'unreachable'],
        [200, 'provisional'],
        [300, 'success'],
      ]),
    ).toEqual(['100 unreachable, done', 'terminated']);
    expect(
      inviteClient(false, [
        [50, 'provisional'],
        [100, 'unreachable'],
        [200, 'failure'],
      ]),
    ).toEqual(['50 pass', '100 unreachable, done', 'terminated']);
  });
});

describe('another request of ours (§17.1.2)', () => {
  test('over UDP is sent again after 0.5, 1, 2 and then every 4 s, and given up after 32 s', () => {
    const sent = [500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500].map((at) => `${at} send`);
    expect(nonInviteClient(false, [])).toEqual([...sent, '32000 timeout, done', 'terminated']);
    expect(nonInviteClient(true, [])).toEqual(['32000 timeout, done', 'terminated']);
  });

  test('is sent every 4 s after a provisional response, which does not give it more time', () => {
    const sent = [500, 4_500, 8_500, 12_500, 16_500, 20_500, 24_500, 28_500].map((at) => `${at} send`);
    expect(nonInviteClient(false, [[100, 'provisional']])).toEqual(['100 pass', ...sent, '32000 timeout, done', 'terminated']);
  });

  test('tells its final response once; over UDP it takes the repetitions for 5 s', () => {
    for (const final of ['success', 'failure'] as const) {
      const inputs: Client = [
        [100, final],
        [200, final],
        [300, 'provisional'],
        [400, 'unreachable'],
      ];
      expect(nonInviteClient(false, inputs)).toEqual(['100 pass', '5100 done', 'terminated']);
      expect(nonInviteClient(true, inputs)).toEqual(['100 pass, done', 'terminated']);
      expect(
        nonInviteClient(true, [
          [50, 'provisional'],
          [100, final],
        ]),
      ).toEqual(['50 pass', '100 pass, done', 'terminated']);
    }
  });

  test('that the transport cannot deliver is over', () => {
    expect(
      nonInviteClient(false, [
        [100, 'unreachable'],
        [200, 'success'],
      ]),
    ).toEqual(['100 unreachable, done', 'terminated']);
    expect(
      nonInviteClient(true, [
        [50, 'provisional'],
        [100, 'unreachable'],
      ]),
    ).toEqual(['50 pass', '100 unreachable, done', 'terminated']);
  });
});

describe('an INVITE of the far end (§17.2.1)', () => {
  test('that comes again gets the last response again, until it is answered 200', () => {
    expect(
      inviteServer(false, [
        [0, 'provisional'],
        [100, 'request'],
        [200, 'provisional'],
        [300, 'success'],
        [400, 'request'],
      ]),
    ).toEqual(['0 send', '100 send', '200 send', '300 send', '32300 done', 'terminated']);
  });

  test('that is refused over UDP gets the refusal again after 0.5, 1, 2 and then every 4 s, for 32 s', () => {
    const sent = [0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500].map((at) => `${at} send`);
    expect(inviteServer(false, [[0, 'failure']])).toEqual([...sent, '32000 timeout, done', 'terminated']);
    expect(inviteServer(true, [[0, 'failure']])).toEqual(['0 send', '32000 timeout, done', 'terminated']);
  });

  test('that is refused is over with the ACK, over UDP 5 s later, which take further ACKs', () => {
    const inputs: Server = [
      [0, 'failure'],
      [100, 'request'],
      [200, 'ack'],
      [300, 'ack'],
      [400, 'request'],
      [450, 'failure'],
    ];
    expect(inviteServer(false, inputs)).toEqual(['0 send', '100 send', '5200 done', 'terminated']);
    expect(inviteServer(true, inputs)).toEqual(['0 send', '100 send', '200 done', 'terminated']);
  });

  test('that was answered takes no other answer; ACKs on its branch are handed on for 32 s (RFC 6026 §7.1)', () => {
    const inputs: Server = [
      [0, 'success'],
      [100, 'ack'],
      [200, 'failure'],
      [300, 'provisional'],
      [400, 'success'],
      [500, 'ack'],
    ];
    for (const reliable of [false, true])
      expect(inviteServer(reliable, inputs)).toEqual([
        '0 send',
        '100 pass ack',
        '400 send',
        '500 pass ack',
        '32000 done',
        'terminated',
      ]);
  });

  test('takes no ACK before it was answered, and no answer but one after a refusal', () => {
    expect(
      inviteServer(true, [
        [0, 'ack'],
        [100, 'failure'],
        [200, 'success'],
        [250, 'provisional'],
        [300, 'ack'],
      ]),
    ).toEqual(['100 send', '300 done', 'terminated']);
  });
});

describe('another request of the far end (§17.2.2)', () => {
  test('gets its last response again when it comes again, over UDP for 32 s', () => {
    for (const final of ['success', 'failure'] as const) {
      const inputs: Server = [
        [0, 'request'],
        [100, 'provisional'],
        [200, 'request'],
        [300, final],
        [400, 'request'],
        [500, 'ack'],
      ];
      expect(nonInviteServer(false, inputs)).toEqual([
        '100 send',
        '200 send',
        '300 send',
        '400 send',
        '32300 done',
        'terminated',
      ]);
      expect(nonInviteServer(true, inputs)).toEqual(['100 send', '200 send', '300 send, done', 'terminated']);
    }
  });

  test('is answered once', () => {
    const inputs: Server = [
      [0, 'success'],
      [100, 'failure'],
      [200, 'provisional'],
      [300, 'success'],
    ];
    expect(nonInviteServer(false, inputs)).toEqual(['0 send', '32000 done', 'terminated']);
    expect(nonInviteServer(true, inputs)).toEqual(['0 send, done', 'terminated']);
  });
});
