/** Datagrams have their turns, so that a flood of them leaves the event loop to others; what is too much is lost. */
import { expect, test } from 'bun:test';
import { openDatagramSocket } from '../../src/carrier/socket/datagram.ts';
import { type Datagram, DatagramQueue } from '../../src/carrier/socket/datagram-queue.ts';
import {
  SIP_DATAGRAMS_WAITING_MAX,
  SIP_DATAGRAMS_WAITING_PER_SOURCE,
  SIP_INVITES_WAITING_PER_SOURCE,
  SIP_TURN_MESSAGES,
} from '../../src/limits.ts';

const datagram = (host: string, text = 'BYE sip:x SIP/2.0'): Datagram => ({
  bytes: new TextEncoder().encode(text),
  host,
  port: 5060,
});

/** A queue whose turns end when the test says so. */
function queue() {
  const worked: Datagram[] = [];
  const ends: (() => void)[] = [];
  const made = new DatagramQueue(
    (each) => worked.push(each),
    (then) => ends.push(then),
  );
  const add = (each: Datagram, count = 1) => {
    for (let i = 0; i < count; i++) made.add({ ...each });
  };
  /** Ends turns until nothing happens in one, and returns how many datagrams of each host were worked on in each. */
  const turns = (): Record<string, number>[] => {
    const all: Record<string, number>[] = [];
    for (let end = ends.shift(); end !== undefined; end = ends.shift()) {
      const before = worked.length;
      end();
      const by: Record<string, number> = {};
      for (const { host } of worked.slice(before)) by[host] = (by[host] ?? 0) + 1;
      if (worked.length > before) all.push(by);
    }
    return all;
  };
  return { worked, add, turns, lost: () => made.lost };
}

test('A turn has its share at once, and the rest in turns after it, round robin by source', () => {
  const { worked, add, turns } = queue();
  add(datagram('a'), SIP_TURN_MESSAGES + 100);
  add(datagram('b'), 3);
  expect(worked.length).toBe(SIP_TURN_MESSAGES);
  expect(turns()).toEqual([{ a: SIP_TURN_MESSAGES - 3, b: 3 }, { a: 100 - (SIP_TURN_MESSAGES - 3) }]);
  expect(turns()).toEqual([]);
  add(datagram('c'));
  expect(worked.at(-1)?.host).toBe('c');
});

test('An INVITE is lost where too many of its source wait, and what belongs to a call later than that', () => {
  const { worked, add, turns, lost } = queue();
  add(datagram('a'), SIP_TURN_MESSAGES);
  add(datagram('a', 'INVITE sip:x SIP/2.0'), SIP_INVITES_WAITING_PER_SOURCE + 10);
  add(datagram('a'), SIP_DATAGRAMS_WAITING_PER_SOURCE);
  add(datagram('b', 'INVITE sip:x SIP/2.0'));
  turns();
  const later = worked.slice(SIP_TURN_MESSAGES);
  const of = (host: string, method: string) =>
    later.filter((each) => each.host === host && new TextDecoder().decode(each.bytes).startsWith(method)).length;
  expect([of('a', 'INVITE'), of('a', 'BYE'), of('b', 'INVITE')]).toEqual([
    SIP_INVITES_WAITING_PER_SOURCE,
    SIP_DATAGRAMS_WAITING_PER_SOURCE - SIP_INVITES_WAITING_PER_SOURCE,
    1,
  ]);
  expect(lost()).toBe(10 + SIP_INVITES_WAITING_PER_SOURCE);
});

test('All sources together have SIP_DATAGRAMS_WAITING_MAX places', () => {
  const { worked, add, turns } = queue();
  add(datagram('first'), SIP_TURN_MESSAGES);
  for (let host = 0; host < 6; host++) add(datagram(`h${host}`), SIP_DATAGRAMS_WAITING_PER_SOURCE);
  turns();
  expect(worked.length).toBe(SIP_TURN_MESSAGES + SIP_DATAGRAMS_WAITING_MAX);
});

test('Timers go on while a socket is sent more than is worked on, and each datagram keeps its bytes', async () => {
  const heard: string[] = [];
  let timers = 0;
  /** The datagrams that were worked on between two timers, at most. */
  let most = 0;
  let since = 0;
  const timer = setInterval(() => {
    timers++;
    since = 0;
  }, 0);
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = await openDatagramSocket(
    '127.0.0.1',
    0,
    () => true,
    ({ bytes }) => {
      heard.push(new TextDecoder().decode(bytes));
      most = Math.max(most, ++since);
      // Each one that is worked on brings two more, so that the socket is not empty before two thousand.
      if (heard.length < 2_000) for (let i = 0; i < 2; i++) sender.send(`message ${heard.length} ${i}`, socket.port, '127.0.0.1');
      else resolve();
    },
  );
  const sender = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0, socket: {} });
  sender.send('message 0 0', socket.port, '127.0.0.1');
  await promise;
  clearInterval(timer);
  sender.close();
  socket.close();
  expect(heard.every((text) => /^message \d+ \d$/.test(text))).toBe(true);
  expect(timers).toBeGreaterThan(5);
  expect(most).toBeLessThan(1_000);
});

/** A socket to which datagrams are sent while script is busy, so that the system alone holds them. */
async function flooded(count: number, bytes: number) {
  let heard = 0;
  const socket = await openDatagramSocket(
    '127.0.0.1',
    0,
    () => true,
    () => {
      heard++;
    },
  );
  const sender = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0, socket: {} });
  let sent = 0;
  for (let each = 0; each < count; each++) if (sender.send(new Uint8Array(bytes), socket.port, '127.0.0.1')) sent++;
  const known = () => heard + socket.lost();
  while (known() < sent) await new Promise<void>((resolve) => setImmediate(resolve));
  const lost = socket.lost();
  sender.close();
  socket.close();
  return { sent, heard, lost, after: socket.lost() };
}

test('What comes while script is busy waits, more of it than a socket has room for by itself', async () => {
  expect(await flooded(250, 500)).toEqual({ sent: 250, heard: 250, lost: 0, after: 0 });
});

test('What the system drops is counted as lost, and is known when the socket is closed', async () => {
  const { sent, heard, lost, after } = await flooded(10_000, 1_400);
  expect(heard + lost).toBe(sent);
  expect(lost).toBeGreaterThan(0);
  expect(after).toBe(lost);
});
