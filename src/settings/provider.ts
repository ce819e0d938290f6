/** The carriers of short messages and charges, from `SMS_PROVIDER`, `PAYMENT_PROVIDER` and `NEDARIM_*`. */
import type { Config } from '../config.ts';
import { SMPP_RATE_MAX_PER_SEC, SMPP_WINDOW_DEFAULT, SMPP_WINDOW_MAX } from '../limits.ts';
import { type Environment, isCutShort, isLoopback, SettingError, text, url, word } from './value.ts';

const SMPP_PORT = 2775;
const SMPP_SHAPE = 'sandbox, off or smpp://USER:PASSWORD@HOST:PORT';
const SMPP_PARAMETERS = ['window', 'rate', 'long', 'system_type'];

/**
 * `smpp://USER:PASSWORD@HOST:PORT`, with `?window=`, `rate=`, `long=udh|payload` and `system_type=` where they differ
 * from the default.
 */
export function smsProvider(env: Environment): Config['smsProvider'] {
  const given = text(env, 'SMS_PROVIDER') ?? 'sandbox';
  if (given === 'sandbox' || given === 'off') return { kind: given };
  const parsed = URL.canParse(given) ? new URL(given) : undefined;
  if (parsed === undefined || parsed.protocol !== 'smpp:' || parsed.hostname === '' || isCutShort(parsed) || hasMore(parsed))
    throw new SettingError('SMS_PROVIDER', SMPP_SHAPE);
  if (parsed.port === '0') throw new SettingError('SMS_PROVIDER', 'a port from 1 to 65535');
  const query = parsed.searchParams;
  const systemId = decoded(parsed.username);
  const password = decoded(parsed.password);
  const systemType = query.get('system_type') ?? '';
  const window = wholeOf(query.get('window') ?? String(SMPP_WINDOW_DEFAULT));
  const rate = query.get('rate');
  const ratePerSec = rate === null ? undefined : wholeOf(rate);
  const longMessages = query.get('long') ?? 'udh';
  // SMPP 3.4 §4.1.1: the C-octet strings of a bind are short.
  if (!isText(systemId, 1, 15) || !isText(password, 0, 8) || !isText(systemType, 0, 12))
    throw new SettingError(
      'SMS_PROVIDER',
      'a user of 1 to 15, a password of at most 8 and a system_type of at most 12 printable ASCII characters',
    );
  if (!(window >= 1 && window <= SMPP_WINDOW_MAX)) throw new SettingError('SMS_PROVIDER', `window from 1 to ${SMPP_WINDOW_MAX}`);
  if (ratePerSec !== undefined && !(ratePerSec >= 1 && ratePerSec <= SMPP_RATE_MAX_PER_SEC))
    throw new SettingError('SMS_PROVIDER', `rate from 1 to ${SMPP_RATE_MAX_PER_SEC} a second`);
  if (longMessages !== 'udh' && longMessages !== 'payload') throw new SettingError('SMS_PROVIDER', 'long=udh or long=payload');
  if ([...query.keys()].some((name) => !SMPP_PARAMETERS.includes(name) || query.getAll(name).length > 1))
    throw new SettingError('SMS_PROVIDER', `no other parameters than ${SMPP_PARAMETERS.join(', ')}, each once`);
  return {
    kind: 'smpp',
    host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: parsed.port === '' ? SMPP_PORT : Number(parsed.port),
    systemId,
    password,
    systemType,
    window,
    ratePerSec,
    longMessages,
  };
}

/** Whether a URL says more than whom to bind as, where and how: none of it would have an effect. */
const hasMore = ({ pathname, hash }: URL): boolean => hash !== '' || (pathname !== '' && pathname !== '/');

/** The whole number that digits write; NaN for anything else, as `1e1`, for which JavaScript would have a number. */
const wholeOf = (digits: string): number => (/^[0-9]{1,9}$/.test(digits) ? Number(digits) : Number.NaN);

/** Percent-decoded. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // It is no text of a bind then either, because of the escape.
    return '\0';
  }
}

const isText = (text: string, least: number, most: number): boolean =>
  /^[\x20-\x7e]*$/.test(text) && text.length >= least && text.length <= most;

const NEDARIM_URL = 'https://matara.pro/nedarimplus';

/** `NEDARIM_API_VALID` is one value for every terminal, or a comma list of `TERMINAL=VALUE`. */
export function paymentProvider(env: Environment): Config['paymentProvider'] {
  const kind = word(env, 'PAYMENT_PROVIDER', 'sandbox', ['sandbox', 'nedarim_plus', 'off']);
  if (kind !== 'nedarim_plus') return { kind };
  const given = text(env, 'NEDARIM_API_VALID');
  if (given === undefined) throw new SettingError('NEDARIM_API_VALID', 'a value, because PAYMENT_PROVIDER is nedarim_plus');
  const base = nedarimUrl(env);
  const clientName = text(env, 'NEDARIM_CLIENT_NAME') ?? 'Sidetone';
  if (clientName.length > 50) throw new SettingError('NEDARIM_CLIENT_NAME', 'at most 50 characters');
  return { kind, url: base.replace(/\/+$/, ''), apiValid: apiValid(given), clientName };
}

/** Card numbers go there, so it is encrypted, unless they stay on this machine. The path of the service is appended. */
function nedarimUrl(env: Environment): string {
  const base = url(env, 'NEDARIM_URL', ['https:', 'http:']) ?? NEDARIM_URL;
  const { protocol, hostname, username, password, search, hash } = new URL(base);
  if (protocol !== 'https:' && !isLoopback(hostname.replace(/^\[(.*)\]$/, '$1')))
    throw new SettingError('NEDARIM_URL', 'a URL starting with https://, because card numbers are sent to it');
  if (username !== '' || password !== '' || search !== '' || hash !== '')
    throw new SettingError('NEDARIM_URL', 'a URL without userinfo, query and fragment');
  return base;
}

function apiValid(given: string): ReadonlyMap<string, string> {
  if (!/^\s*[0-9]{7}=/.test(given)) return new Map([['', given]]);
  return new Map(
    given.split(',').map((pair): [string, string] => {
      const [, terminal, value] = /^\s*([0-9]{7})=(\S+)\s*$/.exec(pair) ?? [];
      if (terminal === undefined || value === undefined)
        throw new SettingError(
          'NEDARIM_API_VALID',
          'one value, or a comma list of TERMINAL=VALUE with terminals of seven digits',
        );
      return [terminal, value];
    }),
  );
}
