/** Variables that look like a setting and are none: they are told, and those of other programs are not. */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { misspeltCheck } from '../../src/doctor/misspelt.ts';
import { misspelt, SETTINGS } from '../../src/settings/misspelt.ts';

const page = readFileSync(join(import.meta.dir, '../../docs/operations/settings.md'), 'utf8');

test('The settings are those of the documentation.', () => {
  const cells = [...page.matchAll(/^\| (`[^|]*`) \|/gm)].map(([, cell = '']) => cell);
  const documented = cells.flatMap((cell) => [...cell.matchAll(/`([A-Z0-9_]+)`/g)].map(([, name = '']) => name));
  // The row of SIP_LISTEN names these two.
  expect([...documented, 'SIP_TLS_CERT', 'SIP_TLS_KEY'].toSorted()).toEqual(SETTINGS.toSorted());
});

test.each([
  ['SIP_LISTN', 'SIP_LISTEN'],
  ['DATABSE_URL', 'DATABASE_URL'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['RTP_PORT', 'RTP_PORTS'],
  ['HTTP_PROT', 'HTTP_PORT'],
  ['SIDETONE_HTTP_PORT', 'HTTP_PORT'],
  ['MASTER_KEY_FILE', 'MASTER_KEY'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['log_level', 'LOG_LEVEL'],
  ['SHUTDOWN_GRACE', 'SHUTDOWN_GRACE_SEC'],
  ['MEDIA_TIMEOUT_SECONDS', 'MEDIA_TIMEOUT_SEC'],
  ['RECORDING_RETENTION_DAY', 'RECORDING_RETENTION_DAYS'],
  ['RECORDNIG_RETENTON_DAYS', 'RECORDING_RETENTION_DAYS'],
])('%s is told as meant for %s', (variable, meant) => {
  expect(misspelt({ [variable]: 'x', PATH: '/bin' })).toEqual([{ variable, meant }]);
});

test('No setting, no variable of another program and none without a value is told.', () => {
  const others = `PATH HOME TERM LANG LC_ALL TZ PWD SHLVL HOSTNAME HTTP_PROXY HTTPS_PROXY HTTPS_PORT http_proxy NO_PROXY
    NODE_ENV NODE_PORT NODE_OPTIONS NODE_EXTRA_CA_CERTS NODE_PATH FTP_HOST SMTP_HOST SMTP_PORT DB_HOST PGHOST REDIS_URL
    NATS_PORT NATS_SERVICE_HOST SIDETONE_URL SIDETONE_SERVICE_HOST SIDETONE_PORT SIDETONE_SERVICE_PORT_HTTP S3_BUCKET
    AWS_REGION LOGNAME OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_TRACES_ENDPOINT OTEL_SERVICE_NAME PUBLIC_IP NEON_API_KEY`;
  const names = [...others.split(/\s+/), ...SETTINGS];
  expect(misspelt(Object.fromEntries(names.map((name) => [name, 'x'])))).toEqual([]);
  expect(misspelt({ SIP_LISTN: ' ', SIDETONE_HTTP_PORT: 'tcp://10.0.0.1:8080' })).toEqual([]);
  expect(misspelt({ DATABASE_URLS: 'x', DATABASE_URL: 'y' })).toEqual([]);
});

test('The doctor names each of them, and no value.', () => {
  expect(misspeltCheck({ PATH: '/bin' })).toEqual([]);
  expect(misspeltCheck({ SIP_LISTN: 'udp:secret', MASTER_KEY_FILE: '/secret' })).toEqual([
    {
      name: 'settings',
      status: 'warning',
      found: 'ignored, because no setting has that name: SIP_LISTN, MASTER_KEY_FILE',
      remedy: 'Where the platform is meant, write SIP_LISTEN, MASTER_KEY (a value, not a file)',
    },
  ]);
});
