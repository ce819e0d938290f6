/** Checks of the receivers of webhooks: whether each is reached, and how far its clock is apart from ours. */
import { type Outbound, OutboundError } from '../outbound/outbound.ts';
import { mayUsePort } from '../outbound/screen.ts';
import { type Check, fault, ok, warning } from './check.ts';
import { codeOf } from './machine.ts';
import type { OperatorApi } from './operator-api.ts';

/** Applications whose webhooks are tried. */
const WEBHOOKS_MAX = 100;
/** The longest wait for a receiver, in milliseconds. */
const RECEIVER_TIMEOUT_MS = 5_000;

/** An application as the operator API tells it, as far as its webhooks go. */
export interface WebhookApp {
  readonly app_uuid: string;
  readonly name: string;
  readonly webhook_url: string;
  /** The receiver answered 410: nothing is sent to it until its URL is set again. */
  readonly webhook_disabled: boolean;
}

/**
 * Asks each application's receiver for nothing, through the platform's own screen. `apart`: how far its clock is off,
 * in ms.
 */
export async function webhookChecks(
  api: OperatorApi,
  apps: readonly WebhookApp[],
  outbound: Outbound,
): Promise<{ readonly checks: readonly Check[]; readonly apart: readonly number[] }> {
  const apart: number[] = [];
  const check = async ({
    app_uuid: appUuid,
    name: appName,
    webhook_url: url,
    webhook_disabled: isOff,
  }: WebhookApp): Promise<Check> => {
    const name = `webhook:${appName}`;
    const set = `bin/sidetone apps update ${appUuid} --webhook-url URL`;
    if (url === '' && !(await isCalled(api, appUuid))) return ok(name, 'no webhook is set, and no number or device leads to it');
    if (url === '') return warning(name, 'no webhook is set: nobody answers its calls', set);
    const { host, port } = new URL(url);
    if (isOff)
      return fault(
        name,
        `is switched off since ${host} answered 410: its events wait`,
        `Set its URL again, the same or another: bin/sidetone apps update ${appUuid} --webhook-url '${url.replaceAll("'", '%27')}'`,
      );
    try {
      // HEAD changes nothing at the receiver.
      const { status, headers, body } = await outbound.fetch({
        url,
        method: 'HEAD',
        headers: {},
        signal: AbortSignal.timeout(RECEIVER_TIMEOUT_MS),
      });
      await body?.cancel();
      const date = Date.parse(headers.get('date') ?? '');
      if (!Number.isNaN(date)) apart.push(date - Date.now());
      return reached({ name, host, status, set });
    } catch (error) {
      const failure = error instanceof OutboundError ? error.failure : codeOf(error);
      const isOther = port !== '' && !mayUsePort(Number(port));
      const remedy = isOther
        ? `Let the receiver listen on another port, because ${port} is that of another protocol, and ${set}`
        : failure === 'rejected'
          ? `Add the private range of ${host} to OUTBOUND_ALLOW, or ${set}`
          : failure === 'tls'
            ? `Give the receiver a certificate that is valid for ${host} and comes with its chain, or ${set}`
            : `Start the receiver, or ${set}`;
      return fault(name, `${host} is not reached (${failure})`, remedy);
    }
  };
  const checks = await Promise.all(apps.slice(0, WEBHOOKS_MAX).map(check));
  return { checks, apart };
}

/** What comes from a gateway whose receiver is away. */
const AWAY = [502, 503, 504];

/**
 * A receiver that answered. Most statuses say only that somebody listens there, because few receivers know HEAD; but a
 * gateway in front of it may say that it is away, and a redirect is no success for a delivery.
 */
function reached({ name, host, status, set }: { name: string; host: string; status: number; set: string }): Check {
  if (AWAY.includes(status))
    return warning(
      name,
      `${host} answers ${status}: what stands there does not reach the receiver`,
      `Start the receiver, or ${set}`,
    );
  if (status >= 300 && status < 400)
    return warning(name, `${host} redirects (${status}), and deliveries follow no redirect`, `Name where it leads: ${set}`);
  return ok(name, `${host} is reached (${status} to HEAD)`);
}

/** Whether an application has a number that is called, or a device that calls. */
async function isCalled(api: OperatorApi, appUuid: string): Promise<boolean> {
  const path = `/operator/v1/apps/${appUuid}`;
  const { inbound_phone_numbers: numbers } = await api.get(path);
  if (!Array.isArray(numbers) || numbers.length > 0) return true;
  return (await api.list(`${path}/devices?limit=1`, 'devices', [])).length > 0;
}
