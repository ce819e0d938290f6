/** The settings that all nodes of a cluster have to have alike, since any of them serves any application. */
import type { Config } from '../config.ts';

/** The values by the names of their variables. Some are secrets. */
export const sharedSettings = (config: Config): Readonly<Record<string, unknown>> => ({
  PUBLIC_URL: config.publicUrl,
  OPERATOR_TOKEN: config.operatorToken,
  OPERATOR_READ_TOKEN: config.operatorReadToken,
  MASTER_KEY_BEFORE: config.masterKeyBefore,
  MCP_WRITE: config.mcpWrite,
  OUTBOUND_ALLOW: config.outboundAllow,
  APP_SESSIONS_MAX: config.appSessionsMax,
  ALLOWED_DESTINATIONS: config.destinations.allowed,
  BLOCKED_DESTINATIONS: config.destinations.blocked,
  APP_RECORDINGS_MAX: config.appRecordingsMax,
  APP_RECORDING_MAX_GB: config.appRecordingMaxGb,
  RECORDINGS: config.recordings,
  RECORDING_URL_TTL_SEC: config.recordingUrlTtlSec,
  RECORDING_RETENTION_DAYS: config.recordingRetentionDays,
  RECORDING_LIVENESS_SEC: config.recordingLivenessSec,
  CALL_HISTORY_DAYS: config.callHistoryDays,
  SIP_TRACE: config.sipTrace,
  SIP_TRACE_HIDE: config.sipTraceHide,
  SIP_DEVICE_PROXIES: config.sipDeviceProxies,
  SIP_BAN_AFTER: config.sipBan.after,
  SIP_BAN_SEC: config.sipBan.sec,
  PAYMENT_PROVIDER: config.paymentProvider,
  NEDARIM_API_VALID: apiValidOf(config),
  PAYMENT_REFERENCE_TTL_SEC: config.paymentReferenceTtlSec,
  SMS_PROVIDER: config.smsProvider,
  WEBHOOK_TIMEOUT_SEC: config.webhookTimeoutSec,
  WEBHOOK_RETRY_SCALE: config.webhookRetryScale,
  ORPHAN_TIMEOUT_SEC: config.orphanTimeoutSec,
  MEDIA_TIMEOUT_SEC: config.mediaTimeoutSec,
  NODE_BURIAL_SEC: config.node.burialSec,
  CALL_TAKEOVER: config.node.takesOver,
});

/** The values of all terminals, in one order: JSON leaves out what a Map has. */
const apiValidOf = ({ paymentProvider: provider }: Config): unknown =>
  provider.kind === 'nedarim_plus' ? [...provider.apiValid].toSorted() : undefined;
