/** The examination of the doctor: machine, settings and the running platform. */
import type { Config } from '../config.ts';
import { createOutbound } from '../outbound/safe-fetch.ts';
import { type Check, fault } from './check.ts';
import { KERNEL, machineChecks } from './machine.ts';
import {
  advertisedCheck,
  certificateCheck,
  loopbackCheck,
  nodeHostCheck,
  portChecks,
  publicUrlCheck,
  publicUrlReached,
} from './network.ts';
import { type Ask, OperatorApi } from './operator-api.ts';
import { platformChecks } from './platform.ts';
import { type Examined, examinedAt, OURSELVES } from './process.ts';

/**
 * Examines everything. `ask` reaches the platform at `origin`, over the network unless told otherwise. `self` is this
 * process, where that is the platform.
 */
export async function examine(settings: Config, origin: string, ask: Ask = fetch, self?: Examined): Promise<readonly Check[]> {
  const now = Date.now();
  const api = new OperatorApi(origin, settings.operatorToken, ask);
  const running = await platformChecks(api, createOutbound(settings.outboundAllow), now);
  const certificate = certificateCheck(settings, now);
  return [
    ...(running?.checks ?? [fault('platform', `does not run at ${origin}`, 'npm start')]),
    ...(await portChecks(settings, running !== undefined)),
    advertisedCheck(settings, running?.farEnds ?? []),
    running === undefined || settings.publicUrl === undefined
      ? publicUrlCheck(settings)
      : await publicUrlReached(settings.publicUrl, fetch),
    ...[loopbackCheck(settings), certificate, nodeHostCheck(settings)].flatMap((each) => each ?? []),
    ...machineChecks(settings.dataDir, self ?? examinedAt(origin, running !== undefined, KERNEL.proc)),
  ];
}

/** Examines once for all who ask while it is done. */
export function examining(settings: Config, origin: string, ask: Ask): () => Promise<readonly Check[]> {
  let under: Promise<readonly Check[]> | undefined;
  return () => {
    under ??= examine(settings, origin, ask, OURSELVES).finally(() => {
      under = undefined;
    });
    return under;
  };
}
