/** The place of the platform that the doctor examines. */
import type { Config } from '../config.ts';
import { originAt } from '../settings/load.ts';
import { type Environment, SettingError, text } from '../settings/value.ts';

/** The URL in `SIDETONE_URL`, which is also `--url`, else that of the settings. Throws for a wrong one. */
export function examinedOrigin(env: Environment, { http }: Pick<Config, 'http'>): string {
  const given = text(env, 'SIDETONE_URL');
  if (given === undefined) return originAt(http.host, http.port);
  const parsed = URL.parse(given);
  const isPlain = parsed?.username === '' && parsed.password === '' && /^https?:[^?#]*$/i.test(given);
  if (!isPlain) throw new SettingError('SIDETONE_URL', 'an http or https URL without user, password, query and fragment');
  return given.replace(/\/+$/, '');
}
