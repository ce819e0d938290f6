/** Contract §1's table of environment variables, each checked once, at start. */
import { isIP } from 'node:net';
import { availableParallelism, networkInterfaces } from 'node:os';
import { resolve } from 'node:path';
import type { Config, SipListen } from '../config.ts';
import { LIVE_SESSIONS_MAX, NODE_LABELS_MAX, RECORDINGS_OF_APP_DEFAULT, RECORDINGS_UNDER_WAY_MAX } from '../limits.ts';
import { databaseDriver, databaseUrl } from './database-url.ts';
import { paymentProvider, smsProvider } from './provider.ts';
import { type KeepSecret, keptSecret } from './secret-file.ts';
import {
  cidrs,
  decimal,
  destinationPrefixes,
  type Environment,
  host,
  isEvery,
  isLoopback,
  isQuoted,
  portRange,
  SettingError,
  sipListen,
  text,
  toldHost,
  toldHosts,
  url,
  whole,
  word,
} from './value.ts';
import { webrtc } from './webrtc.ts';

const DAY_SEC = 24 * 3600;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/**
 * Every setting, from the environment and its defaults. `OPERATOR_TOKEN` and `MASTER_KEY`, where unset, are made once
 * and kept in `DATA_DIR` by `keep`. Throws `SettingError`, whose message is one line naming the variable and what was
 * expected; it never repeats a value.
 */
export function loadConfig(env: Environment, keep: KeepSecret = keptSecret): Config {
  try {
    return configOf(env, keep);
  } catch (error) {
    if (!(error instanceof SettingError && isQuoted(env, error.variable))) throw error;
    throw new SettingError(error.variable, `${error.expected}, without the quotes around it, which are taken as part of it`);
  }
}

function configOf(env: Environment, keep: KeepSecret): Config {
  const httpHost = host(env, 'HTTP_HOST', '127.0.0.1');
  const httpPort = whole(env, 'HTTP_PORT', 8080, 0, 65535);
  const dataDir = resolve(text(env, 'DATA_DIR') ?? './data');
  const listen = sipListen(env, 'SIP_LISTEN', 'udp:127.0.0.1:5060,tcp:127.0.0.1:5060');
  const [firstPort, lastPort] = portRange(env, 'RTP_PORTS', [20000, 29999]);
  const secrets = { env, dataDir, keep };
  const operator = operatorToken(secrets);
  return {
    http: { host: httpHost, port: httpPort },
    publicUrl: publicUrl(env),
    dataDir,
    databaseUrl: databaseUrl(env),
    databaseDriver: databaseDriver(env),
    sip: {
      listen,
      tls: sipTls(
        env,
        listen.some((each) => each.transport === 'tls'),
      ),
      advertise: toldHosts(env, 'SIP_ADVERTISE'),
    },
    rtp: { host: rtpHost(env, listen), firstPort, lastPort },
    webrtc: webrtc(env, httpHost),
    mediaWorkers: whole(env, 'MEDIA_WORKERS', Math.max(1, availableParallelism() - 1), 1, 256),
    appSessionsMax: whole(env, 'APP_SESSIONS_MAX', LIVE_SESSIONS_MAX, 1, LIVE_SESSIONS_MAX),
    destinations: {
      allowed: destinationPrefixes(env, 'ALLOWED_DESTINATIONS'),
      blocked: destinationPrefixes(env, 'BLOCKED_DESTINATIONS'),
    },
    appRecordingsMax: whole(env, 'APP_RECORDINGS_MAX', RECORDINGS_OF_APP_DEFAULT, 1, RECORDINGS_UNDER_WAY_MAX),
    appRecordingMaxGb: decimal(env, 'APP_RECORDING_MAX_GB', 0, 0, 1_000_000),
    operatorToken: operator,
    masterKey: masterKey(secrets),
    masterKeyBefore: masterKeyBefore(env),
    outboundAllow: outboundAllow(env, httpHost),
    recordings: recordings(env),
    recordingUrlTtlSec: whole(env, 'RECORDING_URL_TTL_SEC', DAY_SEC, 1, 365 * DAY_SEC),
    recordingRetentionDays: whole(env, 'RECORDING_RETENTION_DAYS', 30, 1, 36_500),
    paymentProvider: paymentProvider(env),
    smsProvider: smsProvider(env),
    callHistoryDays: whole(env, 'CALL_HISTORY_DAYS', 30, 0, 3_650),
    sipTrace: word(env, 'SIP_TRACE', 'headers', ['headers', 'full', 'off']),
    sipTraceHide: hiddenHeaders(env),
    sipDeviceProxies: cidrs(env, 'SIP_DEVICE_PROXIES'),
    sipBan: { after: whole(env, 'SIP_BAN_AFTER', 30, 0, 1_000_000), sec: whole(env, 'SIP_BAN_SEC', 600, 0, DAY_SEC) },
    operatorReadToken: operatorReadToken(env, operator),
    mcpWrite: word(env, 'MCP_WRITE', 'off', ['on', 'off']) === 'on',
    otlpEndpoint: otlpEndpoint(env),
    natsUrls: natsUrls(env),
    node: {
      host: toldHost(env, 'NODE_HOST') ?? reachable(httpHost),
      labels: labels(env),
      burialSec: whole(env, 'NODE_BURIAL_SEC', 15, 2, 3600),
      takesOver: word(env, 'CALL_TAKEOVER', 'off', ['off', 'on']) === 'on',
    },
    logLevel: word(env, 'LOG_LEVEL', 'info', LOG_LEVELS),
    orphanTimeoutSec: whole(env, 'ORPHAN_TIMEOUT_SEC', 120, 1, DAY_SEC),
    recordingLivenessSec: whole(env, 'RECORDING_LIVENESS_SEC', 10, 1, 3600),
    webhookTimeoutSec: decimal(env, 'WEBHOOK_TIMEOUT_SEC', 10, 0.05, 120),
    webhookRetryScale: decimal(env, 'WEBHOOK_RETRY_SCALE', 1, 0, 100),
    // Contract §6: a card reference may not outlive an hour.
    paymentReferenceTtlSec: whole(env, 'PAYMENT_REFERENCE_TTL_SEC', 3600, 1, 3600),
    mediaTimeoutSec: whole(env, 'MEDIA_TIMEOUT_SEC', 30, 1, DAY_SEC),
    shutdownGraceSec: whole(env, 'SHUTDOWN_GRACE_SEC', 30, 0, 3600),
  };
}

/**
 * The origin of a server without a `PUBLIC_URL`. One that listens on every address is named by the loopback one, where
 * it can be reached from here.
 */
export function originAt(httpHost: string, port: number): string {
  const host = httpHost === '0.0.0.0' ? '127.0.0.1' : httpHost === '::' ? '::1' : httpHost;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Loopback is allowed without asking where HTTP listens there, unless it is forbidden by this word. */
function outboundAllow(env: Environment, httpHost: string): readonly string[] {
  const given = (text(env, 'OUTBOUND_ALLOW') ?? '').split(',').map((each) => each.trim());
  const named = given.filter((each) => each !== NO_LOOPBACK).join(',');
  const allow = cidrs({ OUTBOUND_ALLOW: named }, 'OUTBOUND_ALLOW', ', and of the word no-loopback');
  return isLoopback(httpHost) && !given.includes(NO_LOOPBACK) ? [...allow, ...LOOPBACK] : allow;
}

const NO_LOOPBACK = 'no-loopback';
const LOOPBACK = ['127.0.0.0/8', '::1/128'];

/** A cluster has one database, and one MASTER_KEY, which cannot be made by each node for itself. */
function natsUrls(env: Environment): readonly string[] | undefined {
  // A comma within a password begins no URL.
  const given = text(env, 'NATS_URL')
    ?.split(/,\s*(?=nats:|tls:)/)
    .flatMap((each) => url({ NATS_URL: each }, 'NATS_URL', ['nats:', 'tls:']) ?? []);
  if (given === undefined) return undefined;
  const servers = given.map((each) => new URL(each));
  const logins = servers.flatMap(({ username, password }) => (username ? `${username}:${password}` : []));
  const isOneCluster = new Set(logins).size <= 1 && new Set(servers.map(({ protocol }) => protocol)).size === 1;
  if (!isOneCluster || servers.some(({ hostname }) => hostname.includes(',')))
    throw new SettingError(
      'NATS_URL',
      'the servers of one cluster of NATS, as nats://10.0.0.1:4222,nats://10.0.0.2:4222: all nats:// or all tls://, with one user and password',
    );
  if (text(env, 'DATABASE_URL') === undefined)
    throw new SettingError('DATABASE_URL', 'the database of the cluster, because NATS_URL is set');
  return given;
}

/** The address of this machine that others can reach, where HTTP listens on every address: of IPv4, if it has one. */
export function reachable(httpHost: string, interfaces = networkInterfaces()): string {
  if (!isEvery(httpHost)) return httpHost;
  const own = Object.values(interfaces).flatMap((each) => each ?? []);
  const outward = own.filter(({ internal, address }) => !internal && !address.startsWith('fe80'));
  return (outward.find(({ family }) => family === 'IPv4') ?? outward[0])?.address ?? '127.0.0.1';
}

function labels(env: Environment): readonly string[] {
  const given = (text(env, 'NODE_LABELS') ?? '').split(',').map((each) => each.trim());
  const named = given.filter((each) => each !== '');
  if (named.length > NODE_LABELS_MAX || !named.every((each) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(each)))
    throw new SettingError(
      'NODE_LABELS',
      `at most ${NODE_LABELS_MAX} words of letters, digits, dots and dashes, separated by commas`,
    );
  return named;
}

/**
 * The address of media sockets, which are bound by number: a name is of use to SIP only. Where SIP listens on both IP
 * versions, so do they.
 */
function rtpHost(env: Environment, listen: readonly SipListen[]): string {
  const [sipHost = '127.0.0.1'] = listen.map((each) => each.host);
  const isBoth = new Set(listen.map((each) => isIP(each.host)).filter((version) => version !== 0)).size === 2;
  const given = host(env, 'RTP_HOST', isBoth ? '::' : sipHost === 'localhost' ? '127.0.0.1' : sipHost);
  if (isIP(given) === 0) throw new SettingError('RTP_HOST', 'an IP address of this machine, also where SIP_LISTEN has a name');
  return given;
}

function publicUrl(env: Environment): string | undefined {
  const given = url(env, 'PUBLIC_URL', ['http:', 'https:']);
  if (given === undefined) return undefined;
  const parsed = new URL(given);
  if (parsed.pathname !== '/' || parsed.search !== '' || parsed.hash !== '' || parsed.username !== '' || parsed.password !== '')
    throw new SettingError('PUBLIC_URL', 'an origin without path, query or user, as https://voice.example.com');
  return parsed.origin;
}

/** The base URL of the collector: the path goes on behind it, where a query or a fragment would stand in its way. */
function otlpEndpoint(env: Environment): string | undefined {
  const given = url(env, 'OTEL_EXPORTER_OTLP_ENDPOINT', ['http:', 'https:']);
  if (given !== undefined && /[?#]/.test(given))
    throw new SettingError('OTEL_EXPORTER_OTLP_ENDPOINT', 'a URL without query and fragment');
  return given;
}

function sipTls(env: Environment, wanted: boolean): { certFile: string; keyFile: string } | undefined {
  const certFile = text(env, 'SIP_TLS_CERT');
  const keyFile = text(env, 'SIP_TLS_KEY');
  if (certFile === undefined && keyFile === undefined && !wanted) return undefined;
  if (certFile === undefined)
    throw new SettingError('SIP_TLS_CERT', 'the path of a PEM certificate, because SIP over TLS is set up');
  if (keyFile === undefined) throw new SettingError('SIP_TLS_KEY', 'the path of a PEM key, because SIP over TLS is set up');
  return { certFile: resolve(certFile), keyFile: resolve(keyFile) };
}

interface Secrets {
  readonly env: Environment;
  readonly dataDir: string;
  readonly keep: KeepSecret;
}

function operatorToken({ env, ...kept }: Secrets): string {
  const given = text(env, 'OPERATOR_TOKEN');
  const token = given ?? secretIn(kept, 'operator.token', 'base64url');
  if (!/^[\x21-\x7e]{16,512}$/.test(token))
    throw new SettingError('OPERATOR_TOKEN', `16 to 512 printable characters without spaces${keptAt(given, 'operator.token')}`);
  return token;
}

/** Another token than the operator's own, because whoever has it must not be able to write. */
function operatorReadToken(env: Environment, operator: string): string | undefined {
  const token = text(env, 'OPERATOR_READ_TOKEN');
  if (token === undefined) return undefined;
  if (!/^[\x21-\x7e]{16,512}$/.test(token) || token === operator)
    throw new SettingError('OPERATOR_READ_TOKEN', '16 to 512 printable characters without spaces, other than OPERATOR_TOKEN');
  return token;
}

function hiddenHeaders(env: Environment): readonly string[] {
  const names = (text(env, 'SIP_TRACE_HIDE') ?? '').split(',').map((name) => name.trim().toLowerCase());
  const given = names.filter((name) => name !== '');
  if (given.some((name) => !/^x-[a-z0-9-]{1,100}$/.test(name)))
    throw new SettingError('SIP_TRACE_HIDE', 'names of X- header fields, separated by commas');
  return given;
}

function masterKey({ env, ...kept }: Secrets): Uint8Array {
  const given = text(env, 'MASTER_KEY');
  return keyOf('MASTER_KEY', given ?? secretIn(kept, 'master.key', 'base64'), keptAt(given, 'master.key'));
}

function masterKeyBefore(env: Environment): Uint8Array | undefined {
  const key = text(env, 'MASTER_KEY_BEFORE');
  return key === undefined ? undefined : keyOf('MASTER_KEY_BEFORE', key);
}

/** The place of a secret that no variable gives, for an error. */
const keptAt = (given: string | undefined, name: string): string =>
  given === undefined ? ` in the file ${name} of DATA_DIR, since the variable is not set` : '';

function keyOf(name: string, key: string, where = ''): Uint8Array {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(key))
    throw new SettingError(name, `32 bytes in base64 (44 characters, as openssl rand -base64 32 makes them)${where}`);
  return new Uint8Array(Buffer.from(key, 'base64'));
}

function secretIn({ dataDir, keep }: Omit<Secrets, 'env'>, name: string, encoding: 'base64' | 'base64url'): string {
  try {
    return keep(dataDir, name, 32, encoding);
  } catch (error) {
    if (error instanceof SettingError) throw error;
    const reason = !(error instanceof Error) ? String(error) : 'code' in error ? String(error.code) : error.message;
    throw new SettingError('DATA_DIR', `a directory in which ${name} can be kept (${reason})`);
  }
}

function recordings(env: Environment): Config['recordings'] {
  const given = text(env, 'RECORDINGS') ?? 'file';
  if (given === 'file' || given === 'off') return { kind: given };
  const [, bucket, prefix] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([^?#\s]*))?$/.exec(given) ?? [];
  if (bucket === undefined) {
    const name = given.startsWith('s3://') ? ', BUCKET of 3 to 63 lower-case letters, digits, dots and hyphens' : '';
    throw new SettingError('RECORDINGS', `file, off or s3://BUCKET/PREFIX${name}`);
  }
  if (prefix?.split('/').some((segment) => segment === '.' || segment === '..'))
    throw new SettingError('RECORDINGS', 's3://BUCKET/PREFIX without . and .. in it');
  const endpoint = url(env, 'S3_ENDPOINT', ['http:', 'https:']);
  const needed = (variable: string): string => {
    const value = text(env, variable);
    if (value === undefined) throw new SettingError(variable, 'a value, because RECORDINGS is in S3');
    return value;
  };
  if (endpoint === undefined) needed('S3_ENDPOINT');
  else if (!isPlain(new URL(endpoint))) throw new SettingError('S3_ENDPOINT', 'a URL without user, query or fragment');
  return {
    kind: 's3',
    bucket,
    prefix: prefix ?? '',
    endpoint: endpoint ?? '',
    region: needed('S3_REGION'),
    accessKeyId: needed('S3_ACCESS_KEY_ID'),
    secretAccessKey: needed('S3_SECRET_ACCESS_KEY'),
  };
}

const isPlain = ({ username, password, search, hash }: URL): boolean =>
  username === '' && password === '' && search === '' && hash === '';
