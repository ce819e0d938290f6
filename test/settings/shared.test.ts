import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { marksOf, settingsApart } from '../../src/cluster/membership/settings-marks.ts';
import { loadConfig } from '../../src/settings/load.ts';
import { sharedSettings } from '../../src/settings/shared.ts';

const KEY = Buffer.alloc(32, 1).toString('base64');

/** The names of the settings by which nodes with these two environments differ. */
function apart(one: Record<string, string>, other: Record<string, string>): readonly string[] {
  const dataDir = mkdtempSync(join(tmpdir(), 'sidetone-shared-'));
  const base = { DATA_DIR: dataDir, MASTER_KEY: KEY, OPERATOR_TOKEN: 'operator-token-of-all-nodes' };
  const marks = [one, other].map((env) => marksOf(sharedSettings(loadConfig({ ...base, ...env })), new Uint8Array(32)));
  rmSync(dataDir, { recursive: true });
  return settingsApart(marks[0] ?? {}, marks[1] ?? {});
}

test('Nodes find each setting that they should have alike.', () => {
  const values = {
    PUBLIC_URL: 'https://voice.example.com',
    MASTER_KEY_BEFORE: Buffer.alloc(32, 2).toString('base64'),
    SIP_DEVICE_PROXIES: '192.0.2.0/24',
    SIP_BAN_AFTER: '5',
    SIP_BAN_SEC: '60',
    ALLOWED_DESTINATIONS: '+1',
    BLOCKED_DESTINATIONS: '+1900',
    WEBHOOK_TIMEOUT_SEC: '3',
  };
  for (const [name, value] of Object.entries(values)) expect(apart({}, { [name]: value })).toEqual([name]);
});

test('Nodes find another value for the payment provider by its own name, however its terminals are ordered.', () => {
  const nedarim = (valid: string) => ({ PAYMENT_PROVIDER: 'nedarim_plus', NEDARIM_API_VALID: valid });
  expect(apart(nedarim('1234567=a,7654321=b'), nedarim('1234567=a,7654321=c'))).toEqual(['NEDARIM_API_VALID']);
  expect(apart(nedarim('1234567=a,7654321=b'), nedarim('7654321=b,1234567=a'))).toEqual([]);
});

test('Nodes do not mind what is of one machine.', () => {
  expect(apart({}, { SIP_LISTEN: 'udp:127.0.0.1:5070', NODE_LABELS: 'west', MEDIA_WORKERS: '3', LOG_LEVEL: 'warn' })).toEqual([]);
});
