/**
 * The Path header field of a REGISTER (RFC 3327): the proxies between the registrar and a phone, the nearest to the
 * registrar first. What is sent to the phone later has the same values as its Route. They are kept as they came: a
 * proxy knows by them which phone is meant, by a flow token in the user part (RFC 5626 §5.1), or by a parameter, as
 * `received` of Kamailio and OpenSIPS. Left out: a Path without `lr` is sent as it is, and not routed strictly.
 */
import { detached } from '../../bounds/detached.ts';
import { DEVICE_PATH_MAX_CHARS, DEVICE_PATHS_MAX } from '../../limits.ts';
import { defaultPort } from '../flow.ts';
import { type Headers, splitList } from './message.ts';
import { parseNameAddress, parseUri, plainHost } from './uri.ts';
import type { TransportName } from './via.ts';

/**
 * The values of Path, in order, as a Route has them, and `""` where there are none. Undefined where one is malformed,
 * and where there are too many or too long ones.
 */
export function pathOf(headers: Headers): string | undefined {
  const values = headers.has('path') ? headers.list('path') : [];
  if (values.length > DEVICE_PATHS_MAX || values.some((value) => hostOf(value) === undefined)) return undefined;
  // Brackets are a must (RFC 3327 §4): without them `lr` would be a parameter of the header field.
  const path = values.map((value) => (value.includes('<') ? value : `<${value}>`)).join(', ');
  return path.length > DEVICE_PATH_MAX_CHARS || /[\x00-\x1f\x7f]/.test(path) ? undefined : detached(path);
}

const uriOf = (value: string) => parseUri(parseNameAddress(value)?.uri ?? '');

const hostOf = (value: string): string | undefined => {
  const uri = uriOf(value);
  return uri === undefined || uri.host === '' ? undefined : plainHost(uri.host);
};

/** The proxy that a path begins with, as its URI names it: the one that the REGISTER came from. */
export interface EdgeProxy {
  readonly host: string;
  readonly port: number;
  /** Whether it takes TLS there. */
  readonly isTls: boolean;
}

/**
 * The first proxy of a path. Undefined where the device has none before it. The port that is usual for `transport`
 * counts where none is named.
 */
export function edgeOf(path: string, transport: TransportName): EdgeProxy | undefined {
  const [first = ''] = splitList(path);
  const [uri, host] = [uriOf(first), hostOf(first)];
  if (uri === undefined || host === undefined) return undefined;
  const isTls = uri.scheme === 'sips' || uri.parameters.get('transport')?.toLowerCase() === 'tls';
  return { host, port: uri.port ?? defaultPort(transport), isTls };
}

/** The addresses that the proxies saw the phone at, as they wrote them into `received`. */
export const receivedFrom = (path: string): readonly string[] => splitList(path).flatMap((value) => receivedHost(value) ?? []);

/** The host of `;received=sip:192.0.2.1:5060%3Btransport%3Dtcp`. */
function receivedHost(value: string): string | undefined {
  const [uri = ''] = (uriOf(value)?.parameters.get('received') ?? '').split('%', 1);
  const host = parseUri(uri)?.host ?? '';
  return host === '' ? undefined : plainHost(host);
}

/**
 * Whether two paths lead to one place. A phone that starts anew may come from another port of its address, which
 * `received` tells, as a phone without a proxy before it may.
 */
export const isSamePlace = (one: string, other: string): boolean => one === other || placeOf(one) === placeOf(other);

const placeOf = (path: string): string =>
  splitList(path)
    .map((value) => {
      const [uri, received] = [uriOf(value), receivedHost(value)];
      return uri === undefined || received === undefined ? value : `${uri.user} ${uri.host} ${uri.port} ${received}`;
    })
    .join();
