import { afterAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databaseServers } from '../../src/settings/database-url.ts';
import { loadConfig, originAt, reachable } from '../../src/settings/load.ts';

const dirs: string[] = [];
function freshDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'sidetone-config-'));
  dirs.push(dir);
  return dir;
}
afterAll(() => {
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
});
const load = (env: Record<string, string>) => loadConfig({ DATA_DIR: freshDir(), ...env });

describe('settings', () => {
  test('without any variable have the defaults of the contract', () => {
    const config = load({});
    expect(config).toMatchObject({
      http: { host: '127.0.0.1', port: 8080 },
      publicUrl: undefined,
      databaseUrl: undefined,
      databaseDriver: 'postgres',
      rtp: { host: '127.0.0.1', firstPort: 20000, lastPort: 29999 },
      outboundAllow: ['127.0.0.0/8', '::1/128'],
      recordings: { kind: 'file' },
      recordingUrlTtlSec: 86400,
      recordingRetentionDays: 30,
      paymentProvider: { kind: 'sandbox' },
      smsProvider: { kind: 'sandbox' },
      callHistoryDays: 30,
      sipTrace: 'headers',
      sipTraceHide: [],
      otlpEndpoint: undefined,
      operatorReadToken: undefined,
      natsUrls: undefined,
      logLevel: 'info',
      orphanTimeoutSec: 120,
      recordingLivenessSec: 10,
      webhookTimeoutSec: 10,
      webhookRetryScale: 1,
      paymentReferenceTtlSec: 3600,
      mediaTimeoutSec: 30,
      shutdownGraceSec: 30,
      mcpWrite: false,
      sipBan: { after: 30, sec: 600 },
      node: { burialSec: 15, takesOver: false },
      webrtc: { host: '127.0.0.1', port: 0 },
    });
    expect(load({ HTTP_HOST: '0.0.0.0' }).webrtc).toMatchObject({ host: '0.0.0.0', port: 3478 });
    expect(config.sip.listen).toEqual([
      { transport: 'udp', host: '127.0.0.1', port: 5060 },
      { transport: 'tcp', host: '127.0.0.1', port: 5060 },
    ]);
    expect(config.mediaWorkers).toBeGreaterThanOrEqual(1);
    expect(config.appSessionsMax).toBe(50_000);
    expect(load({ APP_SESSIONS_MAX: '40' }).appSessionsMax).toBe(40);
    expect(config.destinations).toEqual({ allowed: [], blocked: [] });
    expect(load({ ALLOWED_DESTINATIONS: '+972, +1', BLOCKED_DESTINATIONS: '+1900' }).destinations).toEqual({
      allowed: ['+972', '+1'],
      blocked: ['+1900'],
    });
    expect([config.appRecordingsMax, config.appRecordingMaxGb]).toEqual([5_000, 0]);
    expect(load({ APP_RECORDINGS_MAX: '40' }).appRecordingsMax).toBe(40);
    expect(load({ APP_RECORDING_MAX_GB: '0.5' }).appRecordingMaxGb).toBe(0.5);
    expect(config.masterKey.length).toBe(32);
  });

  test('of the extensions are read under the names of the contract', () => {
    const config = load({
      OPERATOR_READ_TOKEN: 'a-token-that-may-read',
      CALL_HISTORY_DAYS: '7',
      SIP_TRACE: 'full',
      SIP_BAN_AFTER: '5',
      SIP_BAN_SEC: '60',
      WEBRTC_LISTEN: '127.0.0.1:3479',
      WEBRTC_ADVERTISE: '203.0.113.5',
      MCP_WRITE: 'on',
      NODE_BURIAL_SEC: '20',
      DATABASE_URL: 'postgres://localhost/x',
      NATS_URL: 'nats://127.0.0.1:4222',
      CALL_TAKEOVER: 'on',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
    });
    expect(config).toMatchObject({
      operatorReadToken: 'a-token-that-may-read',
      callHistoryDays: 7,
      sipTrace: 'full',
      sipBan: { after: 5, sec: 60 },
      webrtc: { host: '127.0.0.1', port: 3479, advertise: ['203.0.113.5'] },
      mcpWrite: true,
      node: { burialSec: 20, takesOver: true },
      otlpEndpoint: 'http://127.0.0.1:4318',
    });
  });

  test('make the operator token and the master key once, readable by their owner only', () => {
    const dir = freshDir();
    const first = loadConfig({ DATA_DIR: dir });
    const second = loadConfig({ DATA_DIR: dir });
    expect(second.operatorToken).toBe(first.operatorToken);
    expect(second.masterKey).toEqual(first.masterKey);
    for (const name of ['operator.token', 'master.key']) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
  });

  test('make a secret anew whose file a full disk has left empty, and name a file that holds none', () => {
    const dir = freshDir();
    writeFileSync(join(dir, 'master.key'), '');
    const { masterKey } = loadConfig({ DATA_DIR: dir });
    expect(loadConfig({ DATA_DIR: dir }).masterKey).toEqual(masterKey);
    expect(statSync(join(dir, 'master.key')).mode & 0o777).toBe(0o600);
    writeFileSync(join(dir, 'master.key'), 'half a k');
    expect(() => loadConfig({ DATA_DIR: dir })).toThrow(/^MASTER_KEY: expected 32 bytes in base64 .* in the file master\.key of/);
  });

  test('are one for two processes that make a secret at once', async () => {
    const dir = freshDir();
    const load = `import { keptSecret } from '${join(import.meta.dir, '../../src/settings/secret-file.ts')}';
      process.stdout.write(keptSecret('${dir}', 'master.key', 32, 'base64'));`;
    const starts = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, '-e', load], { stdout: 'pipe' }));
    const made = await Promise.all(starts.map((start) => new Response(start.stdout).text()));
    expect(made[0]).toHaveLength(44);
    expect(new Set(made).size).toBe(1);
    expect(readdirSync(dir)).toEqual(['master.key']);
  });

  test('leave no file of a secret behind where the disk is full', () => {
    const dir = freshDir();
    const load = `import { keptSecret } from '${join(import.meta.dir, '../../src/settings/secret-file.ts')}';
      keptSecret('${dir}', 'master.key', 32, 'base64');`;
    // No file may grow: a write fails as on a disk without room, after the file was made.
    const limited = ['sh', '-c', 'trap "" XFSZ; ulimit -f 0; exec "$0" -e "$1"', process.execPath, load];
    const { exitCode, stderr } = Bun.spawnSync(limited, { env: { ...process.env, BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0' } });
    expect(String(stderr)).toContain('EFBIG');
    expect(exitCode).not.toBe(0);
    expect(readdirSync(dir)).toEqual([]);
  });

  test('allow loopback targets only while HTTP_HOST is loopback', () => {
    expect(load({ HTTP_HOST: '0.0.0.0', OUTBOUND_ALLOW: '10.0.0.0/8' }).outboundAllow).toEqual(['10.0.0.0/8']);
    expect(load({ HTTP_HOST: '::1' }).outboundAllow).toContain('127.0.0.0/8');
    expect(load({ OUTBOUND_ALLOW: 'no-loopback' }).outboundAllow).toEqual([]);
    expect(load({ OUTBOUND_ALLOW: '10.0.0.0/8, no-loopback' }).outboundAllow).toEqual(['10.0.0.0/8']);
    expect(load({ HTTP_HOST: '0.0.0.0', OUTBOUND_ALLOW: 'no-loopback' }).outboundAllow).toEqual([]);
  });

  test('tell other nodes an address of the machine where HTTP listens on all, of IPv6 where it has no other', () => {
    const of = (family: 'IPv4' | 'IPv6', address: string, internal = false) => ({
      ...(family === 'IPv4' ? { family } : { family, scopeid: 0 }),
      ...{ address, internal, netmask: '', mac: '', cidr: null },
    });
    const lo = [of('IPv4', '127.0.0.1', true), of('IPv6', '::1', true)];
    const [link, global, four] = [of('IPv6', 'fe80::1'), of('IPv6', '2001:db8::5'), of('IPv4', '192.0.2.5')];
    expect(reachable('::', { lo, eth0: [link, global, four] })).toBe('192.0.2.5');
    expect(reachable('::', { lo, eth0: [link, global] })).toBe('2001:db8::5');
    expect(reachable('0.0.0.0', { lo, eth0: [link] })).toBe('127.0.0.1');
    expect(reachable('198.51.100.1', { lo, eth0: [four] })).toBe('198.51.100.1');
  });

  test('read every form of the variables with a grammar', () => {
    const config = load({
      HTTP_HOST: '::',
      HTTP_PORT: '0',
      SIP_LISTEN: 'udp:0.0.0.0:5070, tls:[::1]:5061',
      SIP_TLS_CERT: '/etc/tls/cert.pem',
      SIP_TLS_KEY: '/etc/tls/key.pem',
      RECORDINGS: 's3://bucket-name/some/prefix',
      S3_ENDPOINT: 'https://s3.example.com',
      S3_REGION: 'eu-1',
      S3_ACCESS_KEY_ID: 'id',
      S3_SECRET_ACCESS_KEY: 'secret',
      SMS_PROVIDER: 'smpp://user:pass@smsc.example.com:2775?rate=20',
      OUTBOUND_ALLOW: '192.168.1.7,fd00::/8',
      SIP_DEVICE_PROXIES: '203.0.113.4, 2001:db8::/64',
    });
    expect(config.sipDeviceProxies).toEqual(['203.0.113.4/32', '2001:db8::/64']);
    expect(originAt(config.http.host, 8080)).toBe('http://[::1]:8080');
    expect(originAt('127.0.0.1', 80)).toBe('http://127.0.0.1:80');
    expect(config.sip.listen[1]).toEqual({ transport: 'tls', host: '::1', port: 5061 });
    expect(config.recordings).toMatchObject({ kind: 's3', bucket: 'bucket-name', prefix: 'some/prefix' });
    expect(config.smsProvider).toMatchObject({ kind: 'smpp', window: 10, ratePerSec: 20 });
    expect(config.outboundAllow).toEqual(['192.168.1.7/32', 'fd00::/8']);
  });

  test('bind the audio to both IP versions where SIP listens on both', () => {
    const rtpHost = (SIP_LISTEN: string, more = {}) => load({ SIP_LISTEN, ...more }).rtp.host;
    expect(rtpHost('udp:192.0.2.1:5060,tcp:192.0.2.1:5060')).toBe('192.0.2.1');
    expect(rtpHost('udp:[::1]:5060')).toBe('::1');
    expect(rtpHost('udp:192.0.2.1:5060,udp:[2001:db8::1]:5060')).toBe('::');
    expect(rtpHost('udp:192.0.2.1:5060,udp:[2001:db8::1]:5060', { RTP_HOST: '192.0.2.1' })).toBe('192.0.2.1');
  });

  test('name one address of each IP version in SIP_ADVERTISE, or a name', () => {
    expect(load({}).sip.advertise).toEqual([]);
    expect(load({ SIP_ADVERTISE: 'sip.example.com' }).sip.advertise).toEqual(['sip.example.com']);
    expect(load({ SIP_ADVERTISE: '203.0.113.5, [2001:db8::5]' }).sip.advertise).toEqual(['203.0.113.5', '2001:db8::5']);
  });

  const malformed: readonly (readonly [string, string])[] = [
    ['SMS_PROVIDER', 'smpp://user:pass@smsc.example.com?rate=0'],
    ['SMS_PROVIDER', 'smpp://user:pass@smsc.example.com?rate=1.5'],
    ['SMS_PROVIDER', 'smpp://user:pass@smsc.example.com?rate=1e1'],
    ['SMS_PROVIDER', 'smpp://user:pass@smsc.example.com?window=0x10'],
    ['SMS_PROVIDER', 'smpp://user:pass@smsc.example.com?rate=5&rate=9'],
    ['SMS_PROVIDER', 'smpp://user:pass@smsc.example.com?system_type=%D7%90'],
    ['SMS_PROVIDER', 'smpp://user:pass@smsc.example.com/VMA'],
    ['SMS_PROVIDER', 'smpp://user:pass@smsc.example.com#rate=5'],
    ['SMS_PROVIDER', 'smpp://smsc.example.com:2775'],
    ['SMS_PROVIDER', 'smpp://:pass@smsc.example.com'],
    ['HTTP_HOST', '300.1.1.1'],
    ['HTTP_HOST', 'a b'],
    ['HTTP_PORT', '65536'],
    ['HTTP_PORT', '80a'],
    ['PUBLIC_URL', 'voice.example.com'],
    ['PUBLIC_URL', 'https://voice.example.com/path'],
    ['PUBLIC_URL', 'https://voice.example.com:0'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector.example.com:0'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector.example.com:4318/?key=1'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector.example.com:4318/#traces'],
    ['SMS_PROVIDER', 'smpp://user:pass@smsc.example.com:0'],
    ['DATABASE_URL', 'mysql://h/d'],
    ['DATABASE_URL', 'postgres://user:50%off@h/d'],
    ['DATABASE_URL', 'postgres://u@a:5432,/d'],
    ['DATABASE_URL', 'postgres://u@a:5432,b:x/d'],
    ['DATABASE_URL', `postgres://${Array.from({ length: 17 }, (_, at) => `h${at}`).join(',')}/d`],
    ['NATS_URL', 'nats://user:50%off@h:4222'],
    ['NATS_URL', 'nats://a:4222,b:4222'],
    ['NATS_URL', 'nats://a,b'],
    ['NATS_URL', 'nats://a:4222,'],
    ['NATS_URL', 'nats://a:4222,tls://b:4222'],
    ['NATS_URL', 'nats://user:one@a:4222,nats://user:two@b:4222'],
    ['DATABASE_DRIVER', 'sqlite'],
    ['SIP_LISTEN', 'udp:127.0.0.1'],
    ['SIP_LISTEN', 'sctp:127.0.0.1:5060'],
    ['SIP_LISTEN', 'udp:127.0.0.1:70000'],
    ['SIP_ADVERTISE', 'not a host'],
    ['SIP_ADVERTISE', '0.0.0.0'],
    ['SIP_ADVERTISE', '203.0.113.5,203.0.113.6'],
    ['SIP_ADVERTISE', '203.0.113.5,'],
    ['NODE_HOST', '[::]'],
    ['WEBRTC_LISTEN', '3478'],
    ['WEBRTC_LISTEN', '127.1:3478'],
    ['WEBRTC_ADVERTISE', '192.0.2.1,0.0.0.0'],
    ['WEBRTC_ADVERTISE', '203.0.113'],
    ['WEBRTC_ADVERTISE', '203.0.113.010'],
    ['SIP_TLS_CERT', ''],
    ['RTP_HOST', '0x7f000001'],
    ['RTP_PORTS', '30000-20000'],
    ['RTP_PORTS', '20000'],
    ['RTP_PORTS', '10001-10002'],
    ['MEDIA_WORKERS', '0'],
    ['APP_SESSIONS_MAX', '50001'],
    ['ALLOWED_DESTINATIONS', '972'],
    ['BLOCKED_DESTINATIONS', '+1900,,+1'],
    ['APP_RECORDINGS_MAX', '0'],
    ['APP_RECORDING_MAX_GB', '-1'],
    ['OPERATOR_TOKEN', 'short'],
    ['OPERATOR_READ_TOKEN', 'short'],
    ['CALL_HISTORY_DAYS', '3651'],
    ['SIP_TRACE', 'bodies'],
    ['SIP_TRACE_HIDE', 'X-One,Authorization'],
    ['MASTER_KEY', 'c2hvcnQ='],
    ['MASTER_KEY_BEFORE', 'c2hvcnQ='],
    ['SIP_DEVICE_PROXIES', 'edge.example'],
    ['OUTBOUND_ALLOW', '10.0.0.0/33'],
    ['OUTBOUND_ALLOW', '10/8'],
    ['OUTBOUND_ALLOW', '::ffff:10.0.0.0/104'],
    ['SIP_DEVICE_PROXIES', '::ffff:192.0.2.7'],
    ['RECORDINGS', 'ftp://x'],
    ['RECORDING_URL_TTL_SEC', '-1'],
    ['RECORDING_RETENTION_DAYS', 'x'],
    ['PAYMENT_PROVIDER', 'stripe'],
    ['SMS_PROVIDER', 'http://x'],
    ['NATS_URL', 'http://x'],
    ['LOG_LEVEL', 'loud'],
    ['ORPHAN_TIMEOUT_SEC', '0'],
    ['WEBHOOK_RETRY_SCALE', '-1'],
    ['WEBHOOK_TIMEOUT_SEC', 'ten'],
    ['PAYMENT_REFERENCE_TTL_SEC', '3601'],
    ['MEDIA_TIMEOUT_SEC', '1e3'],
    ['SHUTDOWN_GRACE_SEC', '-5'],
  ];
  test('tell how a password with special characters is written into a URL', () => {
    expect(() => load({ DATABASE_URL: 'postgres://user:pass#word@h/d' })).toThrow(
      'DATABASE_URL: expected a URL starting with postgres:// or postgresql://, with what is special in a password percent-encoded (# is %23)',
    );
    expect(load({ DATABASE_URL: 'postgres://user:pass%23word@h/d' }).databaseUrl).toBe('postgres://user:pass%23word@h/d');
  });

  // `user` would be the host and `12` the port.
  test.each(['/', '#', '?'])('stop at a password of digits and %s, which ends before the host', (special) => {
    const given = `user:12${special}34@h:5000`;
    const database = { DATABASE_URL: 'postgres://h/d' };
    expect(() => load({ DATABASE_URL: `postgres://${given}/d` })).toThrow('DATABASE_URL: expected a URL starting with');
    expect(() => load({ ...database, NATS_URL: `nats://${given}` })).toThrow('NATS_URL: expected a URL starting with');
    expect(() => load({ SMS_PROVIDER: `smpp://${given}` })).toThrow('SMS_PROVIDER: expected ');
    expect(load({ SMS_PROVIDER: `smpp://${given.replace(special, encodeURIComponent(special))}` }).smsProvider).toMatchObject({
      host: 'h',
      port: 5000,
      systemId: 'user',
      password: `12${special}34`,
    });
  });

  test('take a user of the database with an @ in the query', () => {
    const given = 'postgres://h/d?user=me@server';
    expect(load({ DATABASE_URL: given }).databaseUrl).toBe(given);
  });

  test.each(malformed)('stop at a malformed %s, naming it in one line without its value (%s)', (variable, value) => {
    const more: Record<string, string> = variable === 'SIP_TLS_CERT' ? { SIP_LISTEN: 'tls:127.0.0.1:5061' } : {};
    let message = '';
    try {
      load({ [variable]: value, ...more });
    } catch (error) {
      message = error instanceof Error ? error.message : '';
    }
    expect(message).toStartWith(`${variable}: expected `);
    expect(message).not.toContain('\n');
    if (value.length > 4) expect(message).not.toContain(value);
  });

  test('send card numbers in clear to this machine only', () => {
    const provider = (NEDARIM_URL: string) =>
      load({ PAYMENT_PROVIDER: 'nedarim_plus', NEDARIM_API_VALID: 'x', NEDARIM_URL }).paymentProvider;
    for (const url of ['http://127.0.0.1:8090', 'http://localhost:8090', 'http://[::1]:8090', 'https://pay.example.com/base'])
      expect(provider(url)).toMatchObject({ kind: 'nedarim_plus', url });
    for (const url of ['http://matara.pro/nedarimplus', 'http://10.0.0.1'])
      expect(() => provider(url)).toThrow(
        'NEDARIM_URL: expected a URL starting with https://, because card numbers are sent to it',
      );
    for (const url of ['https://u:p@pay.example.com', 'https://pay.example.com/?a=1', 'https://pay.example.com/#a'])
      expect(() => provider(url)).toThrow('NEDARIM_URL: expected a URL without userinfo, query and fragment');
  });

  test('take several servers of a database, of which one is the primary, and none beside one that Neon has', () => {
    const several = 'postgres://user:p,w@10.0.0.1:5432,db2/d?sslmode=verify-full';
    expect(load({ DATABASE_URL: several }).databaseUrl).toBe(several);
    const before = 'postgres://user:p,w@';
    expect(databaseServers(several)).toEqual([
      `${before}10.0.0.1:5432/d?sslmode=verify-full`,
      `${before}db2/d?sslmode=verify-full`,
    ]);
    const versions = 'postgres://u@10.0.0.1,[fd00::1]:5433/d';
    expect(databaseServers(load({ DATABASE_URL: versions }).databaseUrl ?? '')).toEqual([
      'postgres://u@10.0.0.1/d',
      'postgres://u@[fd00::1]:5433/d',
    ]);
    for (const one of ['postgres://h/d', 'postgres://u:a,b@h/d?x=1,2', 'postgres://u@[::1]:5432/d?host=/a,b'])
      expect(databaseServers(one)).toEqual([one]);
    expect(() => load({ DATABASE_URL: several, DATABASE_DRIVER: 'neon' })).toThrow(/^DATABASE_URL: expected one server/);
  });

  test('take one server of NATS or several, and a comma within a password', () => {
    const servers = (NATS_URL: string) => load({ DATABASE_URL: 'postgres://localhost/x', NATS_URL }).natsUrls;
    expect(servers('nats://a:4222')).toEqual(['nats://a:4222']);
    expect(servers('tls://u:p,q@a:4222, tls://b:4222')).toEqual(['tls://u:p,q@a:4222', 'tls://b:4222']);
    expect(servers('nats://u:p@a:4222,nats://u:p@b:4223')).toEqual(['nats://u:p@a:4222', 'nats://u:p@b:4223']);
  });

  test('name the quotes that Docker takes as part of a value', () => {
    expect(() => load({ LOG_LEVEL: '"debug"' })).toThrow(/^LOG_LEVEL: expected one of fatal, .*, without the quotes around it/);
    expect(() => load({ DATABASE_URL: "'postgres://h/d'" })).toThrow(/^DATABASE_URL: expected a URL .* without the quotes/);
    expect(() => load({ LOG_LEVEL: '"debug' })).toThrow(/trace$/);
  });

  test('name the missing half of what belongs together', () => {
    expect(() => load({ DATABASE_DRIVER: 'neon' })).toThrow(/^DATABASE_URL: expected/);
    expect(() => load({ RECORDINGS: 's3://bucket' })).toThrow(/^S3_ENDPOINT: expected/);
    for (const prefix of ['a/../b', './b'])
      expect(() => load({ RECORDINGS: `s3://bucket/${prefix}` })).toThrow(/^RECORDINGS: expected/);
    // What has the form that is asked for is told what else is wrong.
    expect(() => load({ RECORDINGS: 's3://My_Bucket/p' })).toThrow(/BUCKET of 3 to 63 lower-case letters/);
    for (const address of ['id@s3.example.com', ':secret@s3.example.com', 's3.example.com?x', 's3.example.com#x'])
      expect(() => load({ RECORDINGS: 's3://bucket', S3_ENDPOINT: `https://${address}` })).toThrow(
        /^S3_ENDPOINT: expected [^@]*$/,
      );
    expect(() => load({ DATA_DIR: '/dev/null/x' })).toThrow(/^DATA_DIR: expected/);
  });
});
