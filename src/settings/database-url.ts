/**
 * `DATABASE_URL`: one server, or several of which one is the primary, as libpq writes them:
 * `postgres://USER:PASSWORD@10.0.0.1:5432,10.0.0.2:5432/DATABASE`.
 */
import { DATABASE_SERVERS_MAX } from '../limits.ts';
import { type Environment, SettingError, text, url, word } from './value.ts';

/** What stands before the hosts, the hosts, and what stands behind them. A password may have commas. */
const SEVERAL = /^([a-z]+:\/\/(?:[^@/?#]*@)?)([^@/?#]*,[^@/?#]*)((?:[/?#].*)?)$/s;

/** The URL of each server, with the rest of the URL alike. */
export function databaseServers(given: string): readonly string[] {
  const [, before = '', hosts = '', after = ''] = SEVERAL.exec(given) ?? [];
  return hosts === '' ? [given] : hosts.split(',').map((host) => `${before}${host}${after}`);
}

/** The setting as it is given. A server that is no URL is an error, and so are several for the driver of Neon. */
export function databaseUrl(env: Environment): string | undefined {
  const given = text(env, 'DATABASE_URL');
  if (given === undefined) return undefined;
  const servers = databaseServers(given);
  if (servers.length > DATABASE_SERVERS_MAX) throw new SettingError('DATABASE_URL', `${DATABASE_SERVERS_MAX} servers at most`);
  for (const each of servers) url({ DATABASE_URL: each }, 'DATABASE_URL', ['postgres:', 'postgresql:']);
  if (servers.length > 1 && databaseDriver(env) === 'neon')
    throw new SettingError('DATABASE_URL', 'one server, because DATABASE_DRIVER is neon');
  return given;
}

export function databaseDriver(env: Environment): 'postgres' | 'neon' {
  const driver = word(env, 'DATABASE_DRIVER', 'postgres', ['postgres', 'neon']);
  if (driver === 'neon' && text(env, 'DATABASE_URL') === undefined)
    throw new SettingError('DATABASE_URL', 'a postgres:// URL, because DATABASE_DRIVER is neon');
  return driver;
}
