/** The check of variables that look like settings and are none. */
import { type Misspelt, misspelt } from '../settings/misspelt.ts';
import type { Environment } from '../settings/value.ts';
import { type Check, warning } from './check.ts';

/** One warning for all of them; nothing where there is none. Values may be secrets, and are not told. */
export function misspeltCheck(env: Environment): readonly Check[] {
  const found = misspelt(env);
  if (found.length === 0) return [];
  const variables = found.map(({ variable }) => variable).join(', ');
  const remedy = `Where the platform is meant, write ${found.map(meantBy).join(', ')}`;
  return [warning('settings', `ignored, because no setting has that name: ${variables}`, remedy)];
}

/** Secrets are no files, but for the certificate of SIP and its key, which are named by their paths. */
const meantBy = ({ variable, meant }: Misspelt): string =>
  variable.endsWith('_FILE') && !meant.startsWith('SIP_TLS_') ? `${meant} (a value, not a file)` : meant;
