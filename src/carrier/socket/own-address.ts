/**
 * Which of our addresses a far end is told, and which of our sockets it is reached from, where we have several: one of
 * its IP version (RFC 6157), and the one that packets to it leave from, by the routes of the system.
 */
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { detached } from '../../bounds/detached.ts';
import { native } from '../../media/native.ts';
import type { Peer } from '../../sip/flow.ts';

/** A socket that is bound. */
interface Bound {
  readonly transport: Peer['transport'];
  readonly host: string;
  readonly port: number;
}

/** The IP version of an address, and 0 for a name. */
export const versionOf = (host: string): 0 | 4 | 6 => {
  const version = isIP(host);
  return version === 4 || version === 6 ? version : 0;
};

/** Whether an address stands for every address of the machine. */
const isEvery = (host: string): boolean => host === '0.0.0.0' || host === '::';

/** Whether a socket that is bound to `bound` reaches `host`. One on `::` speaks both versions of IP. */
export function reaches(bound: string, host: string): boolean {
  const [own, far] = [versionOf(bound), versionOf(host)];
  return own === far || own === 0 || far === 0 || bound === '::';
}

/** The versions of IP in which names are dialled, the preferred one first; `any`: in the system's order. */
export type Families = readonly (4 | 6)[] | 'any';

/** The versions that sockets at these addresses speak. */
export function spoken(listen: readonly { readonly host: string }[]): Families {
  if (listen.length === 0 || !listen.every(({ host }) => isIP(host) === 6)) return [4, 6];
  return listen.some(({ host }) => host === '::') ? 'any' : [6];
}

/** The best of our sockets for a far end. Undefined where none reaches it. */
export function boundTowards<T extends { readonly host: string }>(sockets: readonly T[], host: string): T | undefined {
  const usable = sockets.filter((each) => reaches(each.host, host));
  if (usable.length < 2) return usable[0];
  const near = interfaceTowards(host);
  const version = versionOf(host);
  return usable.find((each) => each.host === near) ?? usable.find((each) => versionOf(each.host) === version) ?? usable[0];
}

/** The advertised address for a far end: that of its IP version, or else a name, which may have addresses of both. */
function advertisedTowards(advertised: readonly string[], host: string): string | undefined {
  const version = versionOf(host);
  if (version === 0) return advertised[0];
  return advertised.find((each) => versionOf(each) === version) ?? advertised.find((each) => versionOf(each) === 0);
}

/**
 * Our host and port as that peer reaches them: the advertised address, else the bound one, else that of the interface
 * on the way.
 */
export function ownAddress(
  ports: readonly Bound[],
  advertised: readonly string[],
  peer: Peer,
): { readonly host: string; readonly port: number } {
  const own = ports.filter((each) => each.transport === peer.transport);
  const taken = peer.transport === 'udp' ? own[peer.flow - 1] : undefined;
  const fitting = taken !== undefined && reaches(taken.host, peer.host) ? taken : boundTowards(own, peer.host);
  const bound = fitting ?? boundTowards(ports, peer.host) ?? own[0] ?? ports[0];
  const port = (fitting ?? own[0])?.port ?? (peer.transport === 'tls' ? 5061 : (bound?.port ?? 5060));
  const told = peer.profile?.advertise ?? advertisedTowards(advertised, peer.host);
  if (told !== undefined) return { host: told, port };
  const host = bound?.host ?? '0.0.0.0';
  return { host: isEvery(host) ? interfaceTowards(peer.host) : host, port };
}

/**
 * Our address in SDP for audio of a far end there, where RTP is bound to `rtpHost`. Undefined where RTP does not speak
 * the far end's IP version.
 */
export function audioAddress(
  rtpHost: string,
  ports: readonly Bound[],
  advertised: readonly string[],
  far: string,
): string | undefined {
  if (!reaches(rtpHost, far)) return undefined;
  if (!isEvery(rtpHost)) return advertisedTowards(advertised, far) ?? rtpHost;
  return ownAddress(ports, advertised, { transport: 'udp', host: far, port: 0, flow: 0 }).host;
}

/** What the system is asked is kept for so long: each question costs four of its calls, and a call asks ten times. */
const ROUTES_KEPT_MS = 1_000;
const ROUTES_KEPT_MAX = 1_024;
const routes = new Map<string, string>();
let routesSince = performance.now();
const INTERFACES_KEPT_MS = 10_000;
let interfaces = networkInterfaces();
let interfacesReadAt = performance.now();

/**
 * Our address on the way to a peer, by the routes of the system. Where none leads there, as to a name, it is that of
 * the interface whose network holds the peer, else of the first one that is not loopback.
 */
function interfaceTowards(peer: string): string {
  const routed = versionOf(peer) === 0 || peer.includes('%') ? '' : routeTowards(peer);
  return routed === '' ? interfaceNear(peer) : routed;
}

function routeTowards(peer: string): string {
  const now = performance.now();
  if (now - routesSince > ROUTES_KEPT_MS || routes.size >= ROUTES_KEPT_MAX) {
    routes.clear();
    routesSince = now;
  }
  const known = routes.get(peer);
  if (known !== undefined) return known;
  const asked = native.addressTowards(peer);
  // The peer may be a part of a message that came in.
  routes.set(detached(peer), asked);
  return asked;
}

function interfaceNear(peer: string): string {
  if (performance.now() - interfacesReadAt > INTERFACES_KEPT_MS) {
    interfaces = networkInterfaces();
    interfacesReadAt = performance.now();
  }
  const wanted = versionOf(peer) === 6 ? 'IPv6' : 'IPv4';
  const all = Object.values(interfaces).flatMap((each) => each ?? []);
  const usable = all.filter((each) => each.family === wanted);
  const near = usable.find(({ cidr }) => cidr !== null && isInNetwork(peer, cidr));
  if (near !== undefined) return near.address;
  return usable.find((each) => !each.internal && !each.address.startsWith('fe80'))?.address ?? usable[0]?.address ?? '127.0.0.1';
}

function isInNetwork(host: string, cidr: string): boolean {
  if (!ipaddr.isValid(host) || !ipaddr.isValidCIDR(cidr)) return false;
  const address = ipaddr.parse(host);
  const [network, bits] = ipaddr.parseCIDR(cidr);
  return address.kind() === network.kind() && address.match(network, bits);
}
