/**
 * Telephones that register at once, as after a loss of power: `npm run bench -- registrations [PHONES] [RATE]` (5,000
 * at 400 a second). Each asks over UDP without credentials, answers the challenge (MD5) and repeats what has no answer
 * as RFC 3261 §17.1.2 says. Says how many were registered, how long they took, and what the platform's process used.
 */
import { createHash } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { Platform } from '../test/support/platform.ts';
import { cpuNs, databaseCpuNs, median } from './support/usage.ts';

const phones = Number(process.argv[2] ?? 5_000);
const rate = Number(process.argv[3] ?? 400);
/** Addresses that the phones have: the challenges to one address are limited. */
const ADDRESSES = 40;
const T1_MS = 500;
const T2_MS = 4_000;
const GIVEN_UP_MS = 32_000;
const LOOK_MS = 20;
const SETS_AT_ONCE = 16;

interface Phone {
  readonly name: string;
  readonly socket: Socket;
  readonly began: number;
  cseq: number;
  text: string;
  sentAt: number;
  waitMs: number;
}

const platform = await Platform.start({ MEDIA_WORKERS: '1' });
const app = await platform.application('', '+15550002');
const port = Number(platform.sipUdp.split(':').at(-1));
const passwordOf = (name: string) => `password of ${name}`;
const setUp = performance.now();
const names = Array.from({ length: phones }, (_, n) => `phone${n}`);
const left = [...names];
await Promise.all(
  Array.from({ length: SETS_AT_ONCE }, async () => {
    for (let name = left.pop(); name !== undefined; name = left.pop())
      await platform.operator('PUT', `/apps/${app.appUuid}/devices/${name}`, { password: passwordOf(name) });
  }),
);
console.log(`${phones} devices set up in ${((performance.now() - setUp) / 1000).toFixed(1)} s`);

const under = new Map<string, Phone>();
const tookMs: number[] = [];
const statuses = new Map<string, number>();
let repeated = 0;
let givenUp = 0;

const md5 = (text: string) => createHash('md5').update(text).digest('hex');
const uri = `sip:${platform.sipUdp}`;

function request({ name, socket }: Pick<Phone, 'name' | 'socket'>, cseq: number, fields = ''): string {
  const { address, port: own } = socket.address();
  return [
    `REGISTER ${uri} SIP/2.0`,
    `Via: SIP/2.0/UDP ${address}:${own};branch=z9hG4bK${name}.${cseq};rport`,
    `From: <sip:${name}@x>;tag=${name}`,
    `To: <sip:${name}@x>`,
    `Call-ID: ${name}`,
    `CSeq: ${cseq} REGISTER`,
    `Contact: <sip:${name}@${address}:${own}>`,
    `Max-Forwards: 70\r\nExpires: 3600\r\n${fields}Content-Length: 0\r\n\r\n`,
  ].join('\r\n');
}

/** The Authorization for the MD5 challenge among those of a 401 (RFC 7616). */
function answerTo(challenges: string, name: string): string {
  const challenge = challenges.split('\r\n').find((line) => /^www-authenticate:.*\bMD5\b/i.test(line)) ?? '';
  const [, realm = ''] = /realm="([^"]*)"/.exec(challenge) ?? [];
  const [, nonce = ''] = /nonce="([^"]*)"/.exec(challenge) ?? [];
  const response = md5(`${md5(`${name}:${realm}:${passwordOf(name)}`)}:${nonce}:00000001:c:auth:${md5(`REGISTER:${uri}`)}`);
  return `Authorization: Digest username="${name}", realm="${realm}", nonce="${nonce}", uri="${uri}", algorithm=MD5, qop=auth, nc=00000001, cnonce="c", response="${response}"\r\n`;
}

function send(phone: Phone, text: string): void {
  phone.text = text;
  phone.sentAt = performance.now();
  phone.waitMs = T1_MS;
  phone.socket.send(text, port, '127.0.0.1');
}

function hear(text: string): void {
  const status = text.slice(8, 11);
  const phone = under.get(/^Call-ID: (\S+)/im.exec(text)?.[1] ?? '');
  if (phone === undefined || status < '200' || !text.includes(`CSeq: ${phone.cseq} `)) return;
  if (status === '401' && phone.cseq === 1) {
    phone.cseq = 2;
    send(phone, request(phone, 2, answerTo(text, phone.name)));
    return;
  }
  under.delete(phone.name);
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  if (status === '200') tookMs.push(performance.now() - phone.began);
}

function repeat(): void {
  const now = performance.now();
  for (const phone of under.values()) {
    if (now - phone.began > GIVEN_UP_MS) {
      under.delete(phone.name);
      givenUp += 1;
    } else if (now - phone.sentAt > phone.waitMs) {
      repeated += 1;
      phone.sentAt = now;
      phone.waitMs = Math.min(T2_MS, 2 * phone.waitMs);
      phone.socket.send(phone.text, port, '127.0.0.1');
    }
  }
}

const sockets = await Promise.all(
  Array.from({ length: ADDRESSES }, async (_, n) => {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 1024 * 1024 });
    socket.on('message', (bytes) => hear(bytes.toString()));
    await new Promise<void>((resolve) => socket.bind(0, `127.0.1.${n + 1}`, resolve));
    return socket;
  }),
);
const cpu = cpuNs(platform.pid);
const databaseCpu = databaseCpuNs(platform.dataDir);
const began = performance.now();
for (let started = 0; started < phones || under.size > 0; ) {
  const now = performance.now();
  for (; started < Math.min(phones, ((now - began) / 1000) * rate); started += 1) {
    const name = names[started] ?? '';
    const socket = sockets[started % ADDRESSES];
    if (socket === undefined) throw new Error('no socket');
    const phone: Phone = { name, socket, began: now, cseq: 1, text: '', sentAt: now, waitMs: T1_MS };
    under.set(name, phone);
    send(phone, request(phone, 1));
  }
  repeat();
  await Bun.sleep(LOOK_MS);
}
const seconds = (performance.now() - began) / 1000;
tookMs.sort((a, b) => a - b);
const perPhone = (ns: number) => (ns / 1e6 / phones).toFixed(2);
console.log(
  `${tookMs.length} of ${phones} registered in ${seconds.toFixed(1)} s at ${rate} a second; median ${median(tookMs).toFixed(1)} ms, ` +
    `p99 ${tookMs[Math.floor(tookMs.length * 0.99)]?.toFixed(1)}; ${repeated} requests repeated, ${givenUp} given up; ` +
    [...statuses].map(([status, count]) => `${status}: ${count}`).join(', '),
);
console.log(
  `CPU of one: platform ${perPhone(cpuNs(platform.pid) - cpu)} ms, PostgreSQL ${perPhone(databaseCpuNs(platform.dataDir) - databaseCpu)} ms`,
);
for (const socket of sockets) socket.close();
await platform.stop();
