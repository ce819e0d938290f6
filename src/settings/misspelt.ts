/** Variables that are no setting and look like one: what they were meant to set has its default, without a word. */
import type { Environment } from './value.ts';

/** The variables that the platform reads, and those that Bun reads for it, as the documentation has them. */
export const SETTINGS: readonly string[] = [
  ...['HTTP_HOST', 'HTTP_PORT', 'PUBLIC_URL', 'DATA_DIR', 'DATABASE_URL', 'DATABASE_DRIVER', 'LOG_LEVEL', 'SHUTDOWN_GRACE_SEC'],
  ...['SIP_LISTEN', 'SIP_ADVERTISE', 'SIP_TLS_CERT', 'SIP_TLS_KEY', 'SIP_TRACE', 'SIP_TRACE_HIDE', 'SIP_BAN_AFTER'],
  ...['SIP_BAN_SEC', 'SIP_DEVICE_PROXIES', 'WEBRTC_LISTEN', 'WEBRTC_ADVERTISE', 'RTP_HOST', 'RTP_PORTS', 'MEDIA_WORKERS'],
  ...['APP_SESSIONS_MAX', 'APP_RECORDINGS_MAX', 'APP_RECORDING_MAX_GB', 'ALLOWED_DESTINATIONS', 'BLOCKED_DESTINATIONS'],
  ...['OPERATOR_TOKEN', 'OPERATOR_READ_TOKEN', 'MASTER_KEY', 'MASTER_KEY_BEFORE', 'OUTBOUND_ALLOW', 'MCP_WRITE'],
  ...['ORPHAN_TIMEOUT_SEC', 'MEDIA_TIMEOUT_SEC', 'WEBHOOK_TIMEOUT_SEC', 'WEBHOOK_RETRY_SCALE', 'CALL_HISTORY_DAYS'],
  ...['PAYMENT_PROVIDER', 'PAYMENT_REFERENCE_TTL_SEC', 'NEDARIM_API_VALID', 'NEDARIM_URL', 'NEDARIM_CLIENT_NAME'],
  ...['SMS_PROVIDER', 'RECORDINGS', 'S3_ENDPOINT', 'S3_REGION', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'],
  ...['RECORDING_URL_TTL_SEC', 'RECORDING_RETENTION_DAYS', 'RECORDING_LIVENESS_SEC', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
  ...['NATS_URL', 'NODE_HOST', 'NODE_LABELS', 'NODE_BURIAL_SEC', 'CALL_TAKEOVER', 'BUN_CONFIG_MAX_HTTP_REQUESTS'],
];

/** Names of other programs that are one letter away from one of ours. */
const OTHERS = new Set(['HTTPS_HOST', 'HTTPS_PORT', 'SIDETONE_URL']);

/** A name may have two wrong letters from this length on. */
const LONG = 12;

export interface Misspelt {
  readonly variable: string;
  /** The setting that was meant. */
  readonly meant: string;
}

/** The variables that are read by nobody and near the name of a setting, which is not given itself. */
export function misspelt(env: Environment): readonly Misspelt[] {
  return Object.entries(env).flatMap(([variable, value]) => {
    if (!value?.trim() || SETTINGS.includes(variable) || OTHERS.has(variable)) return [];
    // Docker and Kubernetes tell a container the addresses of services by such variables, named after the service.
    if (/^(tcp|udp|sctp):\/\//.test(value)) return [];
    const meant = SETTINGS.find((setting) => isMeant(variable, setting) && !env[setting]?.trim());
    return meant === undefined ? [] : [{ variable, meant }];
  });
}

/** The name without the prefix and suffix that other products have, in capitals, and without the unit at the end. */
const bare = (name: string): string =>
  name
    .toUpperCase()
    .replace(/^SIDETONE_|_FILE$/g, '')
    .replaceAll('-', '_')
    .replace(/_(SECS?|SECONDS|MS|MIN|MINUTES|HOURS|DAYS?|GB|MB)$/, '');

function isMeant(variable: string, setting: string): boolean {
  const [given, own] = [bare(variable), bare(setting)];
  if (given === own || given.replaceAll('_', '') === own.replaceAll('_', '')) return true;
  // A wrong first letter is rare, and FTP_HOST is no RTP_HOST.
  return given[0] === own[0] && distance(given, own) <= (own.length < LONG ? 1 : 2);
}

/** The letters that are to be put in, left out, changed, or changed over with the next one. */
function distance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > 2) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const changed = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      const isTurned = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const turned = isTurned ? (before[j - 2] ?? 0) + 1 : changed;
      next.push(Math.min(changed, turned, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[other.length] ?? 0;
}
