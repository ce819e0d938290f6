/**
 * Checks of addresses and ports, and of the TLS certificate. The ports of HTTP and SIP are tried in any case: while the
 * platform runs none of them can be bound.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { createServer, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import type { Config, SipListen } from '../config.ts';
import { originAt } from '../settings/load.ts';
import { isLoopback } from '../settings/value.ts';
import { formatHostPort } from '../sip/message/uri.ts';
import { type Check, fault, ok, warning } from './check.ts';
import { codeOf } from './machine.ts';

const RTP_PORTS_MIN = 200;
const PUBLIC_URL_TIMEOUT_MS = 5_000;
const RTP_PORTS_TRIED = 20;
const CERTIFICATE_WARNING_MS = 14 * 24 * 3600 * 1000;

/** Tries to bind a port. Resolves with the code of the error, or undefined when it was free. */
const tryBind = (transport: 'udp' | 'tcp', host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const failed = (error: Error): void => resolve(codeOf(error));
    if (transport === 'udp') {
      const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4');
      socket.once('error', failed);
      socket.bind(port, host, () => socket.close(() => resolve(undefined)));
      return;
    }
    const server = createServer();
    server.once('error', failed);
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });

/**
 * The ports of HTTP, SIP and WebRTC, and a few of RTP. `isRunning`: the platform answers, so what it listens on is its
 * own.
 */
export async function portChecks(settings: Config, isRunning: boolean): Promise<readonly Check[]> {
  const { http, sip, rtp, webrtc } = settings;
  const sipChecks = sip.listen.map(({ transport, host, port }) => sipPort({ transport, host, port }, isRunning));
  return [
    await httpPort(http, isRunning),
    ...(await Promise.all(sipChecks)),
    // A platform that runs has said in its log whether it has the port.
    ...(webrtc === undefined || isRunning ? [] : [await webrtcPort(webrtc)]),
    await rtpPorts(rtp, isRunning),
  ];
}

async function httpPort({ host, port }: Config['http'], isRunning: boolean): Promise<Check> {
  const name = 'http_port';
  const failed = await tryBind('tcp', host, port);
  if (isRunning) return held(name, host, port, failed);
  if (failed === undefined) return ok(name, `${formatHostPort(host, port)} is free (the platform does not run)`);
  return fault(
    name,
    `${formatHostPort(host, port)} cannot be bound (${failed})`,
    `Set HTTP_PORT to a free port, or stop what holds it: ss -ltnp 'sport = :${port}'`,
  );
}

/** The port of a platform that runs: one that can be bound is not the one that it listens on. 0 stands for any. */
function held(name: string, host: string, port: number, failed: string | undefined): Check {
  const at = port === 0 ? `a free port of ${host}` : `${formatHostPort(host, port)}`;
  if (failed !== undefined || port === 0) return ok(name, `the platform listens on ${at}`);
  return warning(
    name,
    `the platform runs, and nothing listens on ${at}: its settings are others than those here`,
    'Run doctor on the machine of the platform, with the variables that it was started with',
  );
}

async function sipPort({ transport, host, port }: SipListen, isRunning: boolean): Promise<Check> {
  const name = `sip_port:${transport}`;
  const failed = await tryBind(transport === 'udp' ? 'udp' : 'tcp', host, port);
  if (isRunning) return held(name, host, port, failed);
  if (failed === undefined) return ok(name, `${formatHostPort(host, port)} is free (the platform does not run)`);
  const ss = transport === 'udp' ? 'ss -lunp' : 'ss -ltnp';
  return fault(
    name,
    `${formatHostPort(host, port)} cannot be bound (${failed})`,
    `Set SIP_LISTEN to a free port, or stop what holds it: ${ss} 'sport = :${port}'`,
  );
}

/** The UDP port of calls from browsers. Where nobody asked for it, the platform starts without it. */
async function webrtcPort({ host, port, isDefault }: NonNullable<Config['webrtc']>): Promise<Check> {
  const name = 'webrtc_port';
  const at = port === 0 ? `a free port of ${host}` : `${formatHostPort(host, port)}`;
  const failed = await tryBind('udp', host, port);
  if (failed === undefined) return ok(name, `${port === 0 ? at : `${at} is free`} (the platform does not run)`);
  const holder = port === 0 ? '' : `, or stop what holds it: ss -lunp 'sport = :${port}'`;
  const remedy = `Set WEBRTC_LISTEN to an address of this machine and a free port${holder}`;
  return isDefault
    ? warning(name, `${at} cannot be bound (${failed}): no calls from browsers`, remedy)
    : fault(name, `${at} cannot be bound (${failed})`, remedy);
}

async function rtpPorts({ host, firstPort, lastPort }: Config['rtp'], isRunning: boolean): Promise<Check> {
  const name = 'rtp_ports';
  const count = lastPort - firstPort + 1;
  const range = `${firstPort}-${lastPort} on ${host}`;
  if (count < RTP_PORTS_MIN)
    return warning(
      name,
      `${range} has room for ${Math.floor(count / 2)} calls`,
      'Set RTP_PORTS to a larger range, as 20000-29999',
    );
  if (isRunning) return ok(name, `${range}, ${Math.floor(count / 2)} calls at once`);
  let taken = 0;
  let reason = '';
  for (let n = 0; n < RTP_PORTS_TRIED; n++) {
    const failed = await tryBind('udp', host, firstPort + Math.floor((n * count) / RTP_PORTS_TRIED));
    if (failed === undefined) continue;
    taken += 1;
    reason = failed;
  }
  if (taken === RTP_PORTS_TRIED)
    return fault(
      name,
      `no port of ${range} can be bound (${reason})`,
      'Set RTP_HOST to an address of this machine, and RTP_PORTS to a free range',
    );
  if (taken > 0)
    return warning(
      name,
      `${taken} of ${RTP_PORTS_TRIED} ports tried in ${range} are taken`,
      'Set RTP_PORTS to a range that nothing else uses',
    );
  return ok(name, `${range}, ${Math.floor(count / 2)} calls at once`);
}

/**
 * The origin of the URLs that are handed out. Without PUBLIC_URL a server that listens on every address names the
 * loopback one.
 */
export function publicUrlCheck({ http, publicUrl }: Pick<Config, 'http' | 'publicUrl'>): Check {
  const name = 'public_url';
  const own = originAt(http.host, http.port);
  const origin = publicUrl ?? (http.port === 0 ? own.replace(/:0$/, ', with the port that is free at the start') : own);
  if (publicUrl !== undefined || (http.host !== '0.0.0.0' && http.host !== '::')) return ok(name, origin);
  return warning(
    name,
    `recordings have URLs at ${origin}, which only this machine reaches`,
    'Set PUBLIC_URL to the address at which applications reach the API, as https://voice.example.com',
  );
}

/**
 * Asks whether PUBLIC_URL leads to a platform. It is a warning where it does not, because behind some routers a machine
 * does not reach its own public address.
 */
export async function publicUrlReached(
  origin: string,
  ask: (url: string, init: RequestInit) => Promise<Response>,
): Promise<Check> {
  const name = 'public_url';
  const remedy =
    'See that the proxy there runs, leads to HTTP_HOST and HTTP_PORT, and has a valid certificate: URLs of recordings begin so';
  try {
    const signal = AbortSignal.timeout(PUBLIC_URL_TIMEOUT_MS);
    const response = await ask(`${origin}/healthz`, { redirect: 'manual', signal });
    const body: unknown = await response.json().catch(() => undefined);
    const isOurs = typeof body === 'object' && body !== null && 'status' in body && body.status === 'ok';
    if (response.status === 200 && isOurs) return ok(name, `${origin} leads to a platform`);
    return warning(name, `${origin}/healthz is answered with ${response.status}, and by no platform`, remedy);
  } catch (error) {
    return warning(name, `${origin} is not reached from this machine (${codeOf(error)})`, remedy);
  }
}

/**
 * The services of this machine that listen on loopback. Where HTTP listens there, applications may name them in URLs,
 * which is meant for one machine with its own applications. Undefined where loopback is not allowed as a whole.
 */
export function loopbackCheck({ publicUrl, outboundAllow }: Pick<Config, 'publicUrl' | 'outboundAllow'>): Check | undefined {
  const name = 'outbound_loopback';
  if (!outboundAllow.includes('127.0.0.0/8')) return undefined;
  const isOnlyHere = publicUrl === undefined || isLoopback(new URL(publicUrl).hostname.replace(/^\[(.*)\]$/, '$1'));
  if (isOnlyHere) return ok(name, 'applications may name services of this machine in their URLs');
  return warning(
    name,
    'applications that come from elsewhere may reach every service that listens on loopback of this machine, by their URLs',
    'Set OUTBOUND_ALLOW=no-loopback, and name the addresses of webhooks and bots on this machine beside it, if there are any',
  );
}

/** The address of a node that the other nodes are told. On loopback they are all on one machine, as NATS is. */
export function nodeHostCheck({ natsUrls, node }: Pick<Config, 'natsUrls' | 'node'>): Check | undefined {
  const name = 'node_host';
  if (natsUrls === undefined) return undefined;
  const isAlone = isLoopback(node.host) && natsUrls.some((url) => !isLoopback(new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')));
  if (!isAlone) return ok(name, node.host);
  return warning(
    name,
    `${node.host}: nodes on other machines do not reach it, for Rooms and recordings`,
    'Set NODE_HOST to the address of this machine in the network of the nodes, and HTTP_HOST so that it listens there',
  );
}

const rangeOf = (address: string): string => (ipaddr.isValid(address) ? ipaddr.process(address).range() : 'name');

/** The address that far ends are told. `farEnds` are the addresses of the trunks. */
export function advertisedCheck(settings: Config, farEnds: readonly string[]): Check {
  const name = 'advertised_address';
  const { advertise, listen } = settings.sip;
  // An address that is advertised stands for those of its IP version; a name stands for all.
  const isTold = (host: string) => advertise.some((each) => isIP(each) === 0 || isIP(each) === isIP(host));
  const hosts = [...advertise, ...listen.map(({ host }) => host).filter((host) => !isTold(host))];
  const isAny = (host: string): boolean => host === '0.0.0.0' || host === '::';
  const own = Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);
  const outside = farEnds.filter((address) => rangeOf(address) !== 'loopback');
  const told = [...new Set(hosts)].join(', ');
  const remedy = 'Set SIP_ADVERTISE to the address at which your carriers reach this machine';
  if (hosts.every((host) => rangeOf(host) === 'loopback' || host === 'localhost'))
    return outside.length === 0
      ? ok(name, `${told}, and no trunk lies beyond this machine`)
      : fault(
          name,
          `${told}: carriers cannot reach it (${outside[0]} is one)`,
          `Set SIP_LISTEN and RTP_HOST to an address of the network. ${remedy}`,
        );
  // Each far end is told an address of its own IP version, or a name.
  const isFor = (far: string) => (host: string) => isIP(host) === 0 || isIP(host) === isIP(far);
  const onInternet = outside.filter((address) => rangeOf(address) === 'unicast');
  const reachable = hosts.flatMap((host) => (isAny(host) ? own.filter((address) => rangeOf(address) !== 'loopback') : [host]));
  for (const far of onInternet) {
    const told = reachable.filter(isFor(far));
    if (told.length === 0) return fault(name, `none of ${reachable.join(', ')} is of the IP version of ${far}, a trunk`, remedy);
    if (told.every((host) => rangeOf(host) !== 'unicast' && rangeOf(host) !== 'name'))
      return warning(name, `${told.join(', ')} is private, and a trunk is on the Internet`, remedy);
  }
  const foreign = advertise.find((host) => rangeOf(host) === 'private' && !own.includes(host));
  if (foreign !== undefined) return warning(name, `${foreign} is no address of this machine`, remedy);
  return ok(name, told);
}

/** The certificate of `SIP_TLS_CERT`, and its key. */
export function certificateCheck(settings: Config, now: number): Check | undefined {
  const name = 'sip_tls';
  const { tls } = settings.sip;
  if (tls === undefined) return undefined;
  let pem: string;
  let key: string;
  try {
    pem = readFileSync(tls.certFile, 'utf8');
    key = readFileSync(tls.keyFile, 'utf8');
  } catch (error) {
    return fault(
      name,
      `a file of the certificate cannot be read (${codeOf(error)})`,
      'Set SIP_TLS_CERT and SIP_TLS_KEY to files that this user may read',
    );
  }
  try {
    const chain = (pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []).map(
      (each) => new X509Certificate(each),
    );
    const [leaf, issuer] = chain;
    if (leaf === undefined) return fault(name, `${tls.certFile} has no certificate`, 'Set SIP_TLS_CERT to a PEM file');
    if (!leaf.checkPrivateKey(createPrivateKey(key)))
      return fault(name, 'the key does not belong to the certificate', 'Set SIP_TLS_KEY to the key of SIP_TLS_CERT');
    const until = Date.parse(leaf.validTo);
    const renew = 'Renew it; the new files are taken by themselves, or at SIGHUP';
    if (until <= now) return fault(name, `the certificate expired on ${leaf.validTo}`, renew);
    if (Date.parse(leaf.validFrom) > now)
      return fault(name, `the certificate is not valid before ${leaf.validFrom}`, 'Set the clock, or wait');
    if (until - now < CERTIFICATE_WARNING_MS) return warning(name, `the certificate expires on ${leaf.validTo}`, renew);
    if (issuer === undefined && leaf.issuer !== leaf.subject)
      return warning(
        name,
        'the certificate comes without the one of its issuer',
        'Append the intermediate certificates to SIP_TLS_CERT: carriers refuse a chain with a hole',
      );
    if (issuer !== undefined && !leaf.checkIssued(issuer))
      return warning(
        name,
        'the second certificate of the file did not issue the first one',
        'Put the certificates of SIP_TLS_CERT in order, the own one first',
      );
    return ok(name, `valid until ${leaf.validTo}`);
  } catch (error) {
    return fault(name, `the certificate cannot be used (${codeOf(error)})`, 'Set SIP_TLS_CERT and SIP_TLS_KEY to PEM files');
  }
}
