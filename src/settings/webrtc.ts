/** `WEBRTC_LISTEN` and `WEBRTC_ADVERTISE`: where browsers are reached. */
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Config } from '../config.ts';
import { WEBRTC_DEFAULT_PORT, WEBRTC_HOSTS_MAX } from '../limits.ts';
import { type Environment, isEvery, isLoopback, SettingError, text } from './value.ts';

const LISTEN = /^(\[[0-9a-fA-F:.]+\]|[0-9.]+|[0-9a-fA-F:]+)(?::([0-9]{1,5}))?$/;

/**
 * `HOST`, `HOST:PORT` or `off`, by default `HTTP_HOST`; the port is the system's choice on loopback and 3478 elsewhere.
 * What is advertised is the address itself; where that is every address, those of the machine.
 */
export function webrtc(env: Environment, httpHost: string): Config['webrtc'] {
  const given = text(env, 'WEBRTC_LISTEN') ?? (httpHost === 'localhost' ? '127.0.0.1' : bracketed(httpHost));
  if (given === 'off') return undefined;
  const [, address = '', port] = LISTEN.exec(given) ?? [];
  const host = address.replace(/^\[(.*)\]$/, '$1');
  if (isIP(host) === 0 || Number(port ?? 0) > 65_535) {
    // A name in HTTP_HOST is no address of a socket: browsers are then reached only where the variable says so.
    if (text(env, 'WEBRTC_LISTEN') === undefined) return undefined;
    throw new SettingError('WEBRTC_LISTEN', 'an IP address with or without a port, as 192.0.2.1:3478, or off');
  }
  const bound = port === undefined ? (isLoopback(host) ? 0 : WEBRTC_DEFAULT_PORT) : Number(port);
  return { host, port: bound, isDefault: text(env, 'WEBRTC_LISTEN') === undefined, advertise: advertised(env, host) };
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host);

function advertised(env: Environment, host: string): readonly string[] {
  const given = text(env, 'WEBRTC_ADVERTISE');
  if (given !== undefined) {
    const hosts = given.split(',').map((each) => each.trim().replace(/^\[(.*)\]$/, '$1'));
    if (hosts.length > WEBRTC_HOSTS_MAX || !hosts.every((each) => isIP(each) !== 0 && !isEvery(each)))
      throw new SettingError(
        'WEBRTC_ADVERTISE',
        `at most ${WEBRTC_HOSTS_MAX} IP addresses at which browsers reach this machine, separated by commas`,
      );
    return hosts;
  }
  if (host !== '0.0.0.0' && host !== '::') return [host];
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const reachable = own.filter(
    ({ internal, family, address }) => !internal && (family === 'IPv4' || (host === '::' && !address.startsWith('fe80'))),
  );
  return reachable.length === 0 ? ['127.0.0.1'] : reachable.slice(0, WEBRTC_HOSTS_MAX).map(({ address }) => address);
}
