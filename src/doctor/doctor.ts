/**
 * `sidetone doctor`: looks at the machine, the settings and the running platform, says what is wrong and what to do.
 * Exits with 0, with 1 when there are warnings, with 2 when there are faults. `--json` prints `{checks: […]}`.
 */

import type { Config } from '../config.ts';
import { ignoreProxies } from '../outbound/ignore-proxies.ts';
import { loadConfig } from '../settings/load.ts';
import { seenSecret } from '../settings/secret-file.ts';
import { SettingError } from '../settings/value.ts';
import { type Check, exitCode, fault } from './check.ts';
import { examine } from './examine.ts';
import { leave } from './leave.ts';
import { misspeltCheck } from './misspelt.ts';
import { examinedOrigin } from './origin.ts';

const MARKS = { ok: 'ok     ', warning: 'warning', fault: 'FAULT  ' } as const;

ignoreProxies(process.env);
const checks = await found();
if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify({ checks }, null, 2)}\n`);
else for (const check of checks) process.stdout.write(`${lineOf(check)}\n`);
await leave(exitCode(checks));

async function found(): Promise<readonly Check[]> {
  const ignored = misspeltCheck(process.env);
  const read = settingsOr();
  if ('found' in read) return [read, ...ignored];
  return [...ignored, ...(await examine(read.settings, read.origin))];
}

function settingsOr(): { readonly settings: Config; readonly origin: string } | Check {
  try {
    // Secrets that root made in looking could not be read by the user of the platform.
    const settings = loadConfig(process.env, seenSecret);
    return { settings, origin: examinedOrigin(process.env, settings) };
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    return fault('settings', error.message, 'Set the variable as it is said, or unset it');
  }
}

function lineOf({ name, status, found, remedy }: Check): string {
  return `${MARKS[status]}  ${name.padEnd(24)}  ${found}${remedy === '' ? '' : `\n${' '.repeat(35)}→ ${remedy}`}`;
}
