/** The doctor finds what was broken on purpose, and says what mends it. */
import { afterAll, describe, expect, test } from 'bun:test';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Check, exitCode } from '../../src/doctor/check.ts';
import { machineChecks } from '../../src/doctor/machine.ts';
import {
  advertisedCheck,
  certificateCheck,
  loopbackCheck,
  nodeHostCheck,
  portChecks,
  publicUrlCheck,
  publicUrlReached,
} from '../../src/doctor/network.ts';
import { examinedOrigin } from '../../src/doctor/origin.ts';
import { examinedAt, OURSELVES } from '../../src/doctor/process.ts';
import { loadConfig } from '../../src/settings/load.ts';
import { makeCertificate } from '../support/certificate.ts';
import { Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { freePort } from '../support/sipp.ts';

const directory = mkdtempSync(join(tmpdir(), 'sidetone-doctor-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const settings = (env: Record<string, string>) => loadConfig({ DATA_DIR: directory, ...env });
const named = (checks: readonly Check[], name: string) => checks.find((check) => check.name === name);

/** A `/proc` that says what a test wants. */
function kernel(files: Readonly<Record<string, string>>) {
  const proc = mkdtempSync(join(directory, 'proc-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(proc, path, '..'), { recursive: true });
    writeFileSync(join(proc, path), text);
  }
  return { proc, shm: directory };
}

const portOf = (address: ReturnType<ReturnType<typeof createServer>['address']>): number =>
  typeof address === 'object' && address !== null ? address.port : 0;

test('a SIDETONE_URL that is empty counts as unset, as every variable does', () => {
  const env = {
    PATH: process.env.PATH ?? '',
    HTTP_PORT: '1',
    SIDETONE_URL: '',
    OPERATOR_TOKEN: 'a'.repeat(16),
    DATA_DIR: directory,
  };
  const tool = join(import.meta.dir, '../../bin/sidetone');
  const { stdout } = spawnSync('node', [tool, 'doctor'], { env, encoding: 'utf8' });
  expect(stdout).toContain('does not run at http://127.0.0.1:1\n');
}, 30_000);

test('a SIDETONE_URL with which nothing can be asked is a fault of its own, and the one of before is asked alike', () => {
  const origin = (SIDETONE_URL: string) => examinedOrigin({ SIDETONE_URL }, settings({ HTTP_PORT: '81' }));
  for (const wrong of ['nonsense', 'ftp://a', 'http://', 'http://user@a', 'http://:password@a', 'http://a/?b', 'http://a/#'])
    expect(() => origin(wrong)).toThrow(
      /^SIDETONE_URL: expected an http or https URL without user, password, query and fragment$/,
    );
  expect([origin(' '), origin('https://a/b/')]).toEqual(['http://127.0.0.1:81', 'https://a/b']);
});

test('the doctor writes nothing: secrets that root made by looking could not be read by the platform', () => {
  const parent = mkdtempSync(join(directory, 'before-'));
  const env = { PATH: process.env.PATH ?? '', HTTP_PORT: '1', DATA_DIR: join(parent, 'data') };
  const tool = join(import.meta.dir, '../../bin/sidetone');
  expect(spawnSync('node', [tool, 'doctor'], { env, encoding: 'utf8' }).stdout).toContain('does not run at');
  expect(readdirSync(parent)).toEqual([]);
}, 30_000);

test('URLs at the loopback address of a server that listens on every address are a warning', () => {
  const open = { HTTP_HOST: '0.0.0.0' };
  expect(publicUrlCheck(settings(open))).toMatchObject({
    status: 'warning',
    found: 'recordings have URLs at http://127.0.0.1:8080, which only this machine reaches',
  });
  expect(publicUrlCheck(settings({ ...open, PUBLIC_URL: 'https://voice.example.com' })).status).toBe('ok');
  expect(publicUrlCheck(settings({}))).toMatchObject({ status: 'ok', found: 'http://127.0.0.1:8080' });
  expect(publicUrlCheck(settings({ HTTP_PORT: '0' })).found).toBe('http://127.0.0.1, with the port that is free at the start');
});

test('a PUBLIC_URL that leads to no platform is a warning, with what answers there', async () => {
  const origin = 'https://voice.example.com';
  const reached = (answer: () => Response) =>
    publicUrlReached(origin, async (url, { redirect }) => {
      expect([url, redirect]).toEqual([`${origin}/healthz`, 'manual']);
      return answer();
    });
  expect(await reached(() => Response.json({ status: 'ok' }))).toMatchObject({
    status: 'ok',
    found: `${origin} leads to a platform`,
  });
  expect(await reached(() => new Response('<p>Welcome to nginx!</p>'))).toMatchObject({
    status: 'warning',
    found: `${origin}/healthz is answered with 200, and by no platform`,
    remedy: expect.stringContaining('proxy'),
  });
  expect((await reached(() => new Response('', { status: 502 }))).found).toContain('502');
  const refused = await reached(() => {
    throw Object.assign(new Error('no'), { code: 'CERT_HAS_EXPIRED' });
  });
  expect(refused).toMatchObject({ status: 'warning', found: `${origin} is not reached from this machine (CERT_HAS_EXPIRED)` });
});

test('loopback that applications from elsewhere may reach is a warning, until it is forbidden or named in part', () => {
  const behindProxy = { PUBLIC_URL: 'https://voice.example.com' };
  expect(loopbackCheck(settings(behindProxy))).toMatchObject({
    status: 'warning',
    remedy: expect.stringContaining('OUTBOUND_ALLOW=no-loopback'),
  });
  expect(loopbackCheck(settings({ ...behindProxy, OUTBOUND_ALLOW: 'no-loopback,127.0.0.1' }))).toBeUndefined();
  expect(loopbackCheck(settings({ ...behindProxy, HTTP_HOST: '0.0.0.0' }))).toBeUndefined();
  for (const PUBLIC_URL of ['', 'http://localhost:8080', 'http://[::1]:8080'])
    expect(loopbackCheck(settings({ PUBLIC_URL }))?.status).toBe('ok');
});

test('a node that other machines do not reach is a warning, and one beside its NATS is none', () => {
  const secrets = { OPERATOR_TOKEN: 'a-token-of-the-operator', MASTER_KEY: Buffer.alloc(32).toString('base64') };
  const cluster = { ...secrets, DATABASE_URL: 'postgres://127.0.0.1/x' };
  const check = (nats: string, env = {}) => nodeHostCheck(settings({ ...cluster, NATS_URL: `nats://${nats}:4222`, ...env }));
  expect(check('192.0.2.9')).toMatchObject({ status: 'warning', remedy: expect.stringContaining('NODE_HOST') });
  expect(check('192.0.2.9', { NODE_HOST: '192.0.2.1' })?.status).toBe('ok');
  expect(check('[::1]')?.status).toBe('ok');
  expect(nodeHostCheck(settings({}))).toBeUndefined();
});

describe('the machine', () => {
  test('without real-time priorities, io_uring or descriptors is a warning each, with the line that mends it', () => {
    const checks = machineChecks(
      directory,
      OURSELVES,
      kernel({
        'self/limits':
          'Limit  Soft  Hard  Units\nMax open files            1024   4096   files\nMax realtime priority     0      0\n',
        'self/status': 'CapEff:\t0000000000000000\nSeccomp:\t0\n',
        'sys/kernel/io_uring_disabled': '2\n',
      }),
    );
    expect(named(checks, 'realtime_priority')).toMatchObject({
      status: 'warning',
      // A media thread takes priority 1; the unit of systemd and compose.yaml permit as much.
      remedy: expect.stringMatching(/LimitRTPRIO=1 .*--ulimit rtprio=1 .*--rtprio=1$/),
    });
    expect(named(checks, 'io_uring')).toMatchObject({
      status: 'warning',
      remedy: expect.stringContaining('io_uring_disabled=0'),
    });
    expect(named(checks, 'descriptors')).toMatchObject({ status: 'warning', found: expect.stringContaining('1024') });
    expect(exitCode(checks)).toBe(1);
  });

  test('with all of them is in order', () => {
    const checks = machineChecks(
      directory,
      OURSELVES,
      kernel({
        'self/limits': 'Max open files            65536   65536   files\nMax realtime priority     20      20\n',
        'self/status': 'CapEff:\t0000000000000000\nSeccomp:\t0\n',
        'sys/kernel/io_uring_disabled': '0\n',
      }),
    );
    expect(checks.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
    expect(exitCode(checks)).toBe(0);
  });

  test('in a container with a seccomp filter may lack io_uring', () => {
    const checks = machineChecks(directory, OURSELVES, kernel({ 'self/limits': '', 'self/status': 'CapEff:\t0\nSeccomp:\t2\n' }));
    expect(named(checks, 'io_uring')).toMatchObject({ status: 'warning', found: expect.stringContaining('seccomp') });
  });

  test('whose data directory is still to be made, with those above it, is looked at where it will be', () => {
    const checks = machineChecks(join(directory, 'not', 'yet', 'there'), OURSELVES, kernel({ 'self/limits': '' }));
    expect(named(checks, 'disk')).toMatchObject({ status: 'ok', found: expect.stringContaining(`free in ${directory}`) });
  });

  test('has the limits of the process that listens on the HTTP port, and those of the shell where that cannot be seen', () => {
    const port = '1F90'; // 8080
    const line = (state: string, inode: number) =>
      `   0: 0100007F:${port} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1\n`;
    const limits = (files: number) => `Max open files            ${files}   65536   files\nMax realtime priority     1      1\n`;
    const made = kernel({
      'net/tcp': `  sl  local_address\n${line('01', 41)}${line('0A', 42)}`,
      'self/limits': limits(1024),
      '7/limits': limits(2048),
      '7/fd/about': '',
      '9/limits': limits(65_536),
      '9/fd/about': '',
    });
    symlinkSync('socket:[41]', join(made.proc, '7/fd/3'));
    symlinkSync('socket:[42]', join(made.proc, '9/fd/12'));
    const found = (origin: string, isRunning: boolean) =>
      named(machineChecks(directory, examinedAt(origin, isRunning, made.proc), made), 'descriptors')?.found;
    expect(found('http://127.0.0.1:8080', true)).toBe('at most 65536 open files (of process 9)');
    expect(found('http://127.0.0.1:8080', false)).toBe('at most 1024 open files (of this shell)');
    expect(found('http://192.0.2.1:8080', true)).toContain('of this shell, not of the platform, which is on another machine');
    rmSync(join(made.proc, '9/fd'), { recursive: true });
    expect(found('http://127.0.0.1:8080', true)).toContain('may not see the process of the platform, so run doctor as root');
  });

  test('without a place to write, or shared memory, is a fault', () => {
    const checks = machineChecks('/proc/nowhere/data', OURSELVES, { proc: directory, shm: join(directory, 'none') });
    expect(named(checks, 'disk')).toMatchObject({ status: 'fault', remedy: expect.stringContaining('DATA_DIR') });
    expect(named(checks, 'dev_shm')).toMatchObject({ status: 'fault' });
    expect(exitCode(checks)).toBe(2);
  });
});

describe('ports', () => {
  test('that are taken are faults, and the command that tells by whom is named', async () => {
    const udp = createSocket('udp4');
    await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve));
    const tcp = createServer();
    await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve));
    const address = tcp.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      const checks = await portChecks(
        settings({ HTTP_PORT: String(port), SIP_LISTEN: `udp:127.0.0.1:${udp.address().port},tcp:127.0.0.1:${port}` }),
        false,
      );
      for (const name of ['http_port', 'sip_port:udp', 'sip_port:tcp'])
        expect(named(checks, name)).toMatchObject({
          status: 'fault',
          found: expect.stringContaining('EADDRINUSE'),
          remedy: expect.stringContaining('ss -l'),
        });
    } finally {
      udp.close();
      tcp.close();
    }
  });

  test('a port that can be bound is not the one that a running platform listens on', async () => {
    const { http, ...others } = settings({ SIP_LISTEN: 'udp:127.0.0.1:0' });
    const holder = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
    const at = async (port: number) => named(await portChecks({ ...others, http: { ...http, port } }, true), 'http_port')?.status;
    const { port } = holder;
    const held = await at(port);
    holder.stop(true);
    expect([held, await at(port), await at(0)]).toEqual(['ok', 'warning', 'ok']);
  });

  test('of WebRTC that is taken is a fault where it was asked for, else a warning', async () => {
    const udp = createSocket('udp4');
    await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve));
    const { port } = udp.address();
    const of = async (more: object, env: Record<string, string> = {}, isRunning = false) => {
      const { webrtc, ...others } = settings({ HTTP_PORT: '0', SIP_LISTEN: 'udp:127.0.0.1:0', ...env });
      return named(
        await portChecks({ ...others, webrtc: webrtc === undefined ? undefined : { ...webrtc, ...more } }, isRunning),
        'webrtc_port',
      );
    };
    const asked = { WEBRTC_LISTEN: `127.0.0.1:${port}` };
    try {
      expect(await of({}, asked)).toMatchObject({
        status: 'fault',
        found: expect.stringContaining('EADDRINUSE'),
        remedy: expect.stringContaining('WEBRTC_LISTEN'),
      });
      expect(await of({ port })).toMatchObject({ status: 'warning', found: expect.stringContaining('no calls from browsers') });
      expect(await of({}, asked, true)).toBeUndefined();
    } finally {
      udp.close();
    }
    expect(await of({}, asked)).toMatchObject({ status: 'ok' });
    expect(await of({})).toMatchObject({ status: 'ok' });
    expect(await of({}, { WEBRTC_LISTEN: 'off' })).toBeUndefined();
  });

  test('of RTP on an address that is not ours are a fault, and too few of them a warning', async () => {
    const of = async (env: Record<string, string>) =>
      named(await portChecks(settings({ HTTP_PORT: '0', SIP_LISTEN: 'udp:127.0.0.1:0', ...env }), false), 'rtp_ports');
    expect(await of({ RTP_HOST: '192.0.2.1' })).toMatchObject({
      status: 'fault',
      found: expect.stringContaining('EADDRNOTAVAIL'),
    });
    expect(await of({ RTP_PORTS: '24000-24009' })).toMatchObject({
      status: 'warning',
      found: expect.stringContaining('5 calls'),
    });
  });
});

describe('the advertised address', () => {
  const check = (env: Record<string, string>, farEnds: readonly string[]) => advertisedCheck(settings(env), farEnds);

  test('that is loopback while a trunk is elsewhere is a fault', () => {
    expect(check({}, ['198.51.100.7'])).toMatchObject({ status: 'fault', remedy: expect.stringContaining('SIP_ADVERTISE') });
    expect(check({}, ['127.0.0.1'])).toMatchObject({ status: 'ok' });
  });

  test('that is private while a trunk is on the Internet is a warning', () => {
    expect(check({ SIP_LISTEN: 'udp:10.0.0.5:5060' }, ['8.8.8.8'])).toMatchObject({ status: 'warning' });
    expect(check({ SIP_LISTEN: 'udp:10.0.0.5:5060', SIP_ADVERTISE: '8.8.4.4' }, ['8.8.8.8'])).toMatchObject({ status: 'ok' });
    expect(check({ SIP_LISTEN: 'udp:10.0.0.5:5060', SIP_ADVERTISE: '10.9.9.9' }, ['10.0.0.9'])).toMatchObject({
      status: 'warning',
    });
  });
});

describe('the advertised address of each IP version', () => {
  const check = (env: Record<string, string>, farEnds: readonly string[]) => advertisedCheck(settings(env), farEnds);
  const listen = 'udp:10.0.0.5:5060,tcp:10.0.0.5:5060,udp:[2606:4700::5]:5060';

  test('is told to the far ends of that version only, and once', () => {
    expect(check({ SIP_LISTEN: listen }, ['2606:4700::9'])).toMatchObject({ status: 'ok', found: '10.0.0.5, 2606:4700::5' });
    expect(check({ SIP_LISTEN: listen }, ['8.8.8.8'])).toMatchObject({
      status: 'warning',
      found: expect.stringContaining('10.0.0.5 is'),
    });
    expect(check({ SIP_LISTEN: listen, SIP_ADVERTISE: '8.8.4.4,2606:4700::5' }, ['8.8.8.8'])).toMatchObject({ status: 'ok' });
    expect(check({ SIP_LISTEN: listen, SIP_ADVERTISE: '8.8.4.4' }, ['2606:4700::9'])).toMatchObject({ status: 'ok' });
    expect(check({ SIP_LISTEN: 'udp:8.8.4.4:5060' }, ['2606:4700::9'])).toMatchObject({ status: 'fault' });
  });
});

describe('the certificate', () => {
  const certFile = join(directory, 'cert.pem');
  const keyFile = join(directory, 'key.pem');
  makeCertificate({ certFile, keyFile }, { name: 'voice.example.com', days: 30 });
  const tls = (more: Record<string, string> = {}) =>
    settings({ SIP_LISTEN: 'tls:127.0.0.1:5061', SIP_TLS_CERT: certFile, SIP_TLS_KEY: keyFile, ...more });
  const day = 24 * 3600 * 1000;

  test('is told with its last day, as a warning two weeks before, as a fault after it', () => {
    expect(certificateCheck(tls(), Date.now())).toMatchObject({ status: 'ok' });
    expect(certificateCheck(tls(), Date.now() + 20 * day)).toMatchObject({ status: 'warning' });
    expect(certificateCheck(tls(), Date.now() + 31 * day)).toMatchObject({
      status: 'fault',
      found: expect.stringContaining('expired'),
    });
    expect(certificateCheck(settings({}), Date.now())).toBeUndefined();
  });

  test('with the key of another one, or no file at all, is a fault', () => {
    const other = join(directory, 'other.pem');
    execFileSync('openssl', ['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', other], {
      stdio: 'ignore',
    });
    expect(certificateCheck(tls({ SIP_TLS_KEY: other }), Date.now())).toMatchObject({
      status: 'fault',
      found: expect.stringContaining('key'),
    });
    expect(certificateCheck(tls({ SIP_TLS_CERT: join(directory, 'none.pem') }), Date.now())).toMatchObject({ status: 'fault' });
  });
});

interface Told {
  readonly code: number | null;
  readonly checks: readonly Check[];
}

/** Runs the command beside a platform. */
async function doctor(platform: Platform, env: Record<string, string> = {}): Promise<Told> {
  // The command itself may open fewer files than a platform needs.
  const limited = ['-c', 'ulimit -Sn 512 && exec "$@"', 'sh', 'node'];
  const child = spawn(
    'sh',
    [
      ...limited,
      join(import.meta.dir, '../../bin/sidetone'),
      'doctor',
      '--json',
      '--url',
      platform.url,
      '--data-dir',
      platform.dataDir,
    ],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, HTTP_PORT: new URL(platform.url).port, SIP_LISTEN: `udp:${platform.sipUdp}`, ...env },
    },
  );
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  const { checks }: { readonly checks: readonly Check[] } = JSON.parse(text);
  return { code, checks };
}

describe('beside the running platform', () => {
  test('each broken trunk, webhook and refusal is told by its name, and the exit code says how bad it is', async () => {
    const receiver = new Receiver();
    // Its clock is an hour behind.
    const clock = createHttpServer((_, response) => {
      response.sendDate = false;
      response.writeHead(405, { date: new Date(Date.now() - 3_600_000).toUTCString() }).end();
    });
    await new Promise<void>((resolve) => clock.listen(0, '127.0.0.1', resolve));
    const platform = await Platform.start();
    try {
      const healthy = await platform.application(receiver.url, '+15550071');
      await platform.operator('PATCH', `/apps/${healthy.appUuid}`, { name: 'healthy' });
      const late = await platform.application(`http://127.0.0.1:${portOf(clock.address())}/`, '+15550073');
      await platform.operator('PATCH', `/apps/${late.appUuid}`, { name: 'late' });
      const silent = await platform.application(`http://127.0.0.1:${await freePort()}/`, '+15550072');
      await platform.operator('PATCH', `/apps/${silent.appUuid}`, { name: 'silent' });
      await platform.operator('PUT', '/trunks/refusing', {
        uri: `sip:127.0.0.1:${await freePort()};transport=tcp`,
        inbound_cidrs: [],
      });
      await platform.operator('PUT', '/trunks/stranger', {
        uri: `sip:127.0.0.1:${await freePort()};transport=tcp`,
        inbound_cidrs: [],
        register: true,
        username: 'u',
        password: 'p',
      });
      await platform.operator('PUT', '/trunks/nowhere', { uri: 'sip:no-such-host.invalid', inbound_cidrs: [] });
      await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
      const stranger = createSocket('udp4');
      const [host = '', port = '0'] = platform.sipUdp.split(':');
      const invite = `INVITE sip:1@x SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:1;rport;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:1@x>\r\nCall-ID: doctor\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n`;
      await new Promise<void>((resolve) => {
        stranger.once('message', () => resolve());
        stranger.send(invite, Number(port), host);
      });
      stranger.close();
      const told = await doctor(platform);
      expect(told.code).toBe(2);
      expect(named(told.checks, 'platform')).toMatchObject({ status: 'ok' });
      expect(named(told.checks, 'http_port')).toMatchObject({ status: 'ok' });
      const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync(`/proc/${platform.pid}/limits`, 'utf8')) ?? [];
      expect(named(told.checks, 'descriptors')?.found).toBe(`at most ${limit} open files (of process ${platform.pid})`);
      expect(named(told.checks, 'trunk:refusing')).toMatchObject({ status: 'fault', remedy: expect.stringContaining('port') });
      expect(named(told.checks, 'trunk:stranger')).toMatchObject({
        status: 'fault',
        found: expect.stringContaining('does not answer REGISTER'),
        remedy: expect.stringContaining('port and transport'),
      });
      expect(named(told.checks, 'clock')).toMatchObject({ status: 'warning', remedy: expect.stringContaining('NTP') });
      expect(named(told.checks, 'trunk:nowhere')).toMatchObject({
        status: 'fault',
        found: expect.stringContaining('no-such-host.invalid has no address'),
      });
      expect(named(told.checks, 'trunk:loop')).toMatchObject({ status: 'ok' });
      expect(named(told.checks, 'webhook:healthy')).toMatchObject({ status: 'ok' });
      expect(named(told.checks, 'webhook:silent')).toMatchObject({
        status: 'fault',
        remedy: expect.stringContaining('--webhook-url'),
      });
      expect(named(told.checks, 'webhook:default')).toMatchObject({ status: 'ok', found: expect.stringContaining('no webhook') });
      expect(named(told.checks, 'refusals')).toMatchObject({
        status: 'warning',
        remedy: expect.stringContaining('inbound_cidrs'),
      });
      expect(await doctor(platform, { RTP_PORTS: 'many' })).toMatchObject({
        code: 2,
        checks: [{ name: 'settings', status: 'fault' }],
      });
      await platform.terminate();
      expect(named((await doctor(platform)).checks, 'platform')).toMatchObject({ status: 'fault', remedy: 'npm start' });
    } finally {
      clock.close();
      await platform.stop();
      await receiver.stop();
    }
  }, 60_000);
});
