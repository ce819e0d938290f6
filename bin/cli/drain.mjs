/** `drain`: gives the platform of this machine no new calls, and waits until those it has are over. */
import { networkInterfaces } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { nodeDrainFields } from './fields.mjs';
import { Stop } from './stop.mjs';

const LOOK_MS = 500;

/**
 * Drains the node that answers, and resolves when it has no calls. Past `deadline` seconds its calls are ended.
 */
export async function drain(api, { deadline }, signal) {
  const order = nodeDrainFields({ deadline });
  const { node_id: node } = own(await live(api));
  await api.json('POST', `/nodes/${node}/drain`, {}, order);
  let told;
  while (!signal.aborted) {
    const left = await sessions(api);
    if (left !== told) console.log(lineOf(left));
    // A command that was admitted before the order shows within a look.
    if (left === 0 && told === 0) return;
    told = left;
    await pause(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}

const lineOf = (left) => (left === undefined ? 'no answer; asking again' : left === 0 ? 'drained' : `${left} Sessions are left`);

/**
 * The live Sessions of the process that answers. Undefined where they are not known: a platform that is busy, or has an
 * error, has its calls all the same. One whose port nobody listens on has ended.
 */
async function sessions({ base }) {
  try {
    const response = await fetch(`${base}/metrics`, { signal: AbortSignal.timeout(15_000) });
    const told = /^sidetone_sessions (\d+)$/m.exec(await response.text())?.[1];
    return told === undefined ? undefined : Number(told);
  } catch (error) {
    return ENDED.has(error.cause?.code ?? error.code) ? 0 : undefined;
  }
}

/** The code of a refused connection, as Node and Bun have it. */
const ENDED = new Set(['ECONNREFUSED', 'ConnectionRefused']);

const live = async (api) => (await api.json('GET', '/nodes', { nodes: [{ node_id: '' }] })).nodes.filter((node) => !node.dead_at);

/** The node that answers. One of a release before `here` is found by NODE_HOST and HTTP_PORT, or as the only one. */
function own(nodes) {
  const here = nodes.find((node) => node.here);
  if (here !== undefined) return here;
  const host = process.env.NODE_HOST || reachable(process.env.HTTP_HOST || '127.0.0.1');
  const port = process.env.HTTP_PORT || '8080';
  const found = nodes.filter((node) => node.http_host === host && String(node.http_port) === port);
  const one = nodes.length === 1 ? nodes : found;
  if (one.length !== 1)
    throw new Stop('which of the nodes is it? Set NODE_HOST and HTTP_PORT as it has them (sidetone nodes list)');
  return one[0];
}

/** The NODE_HOST of a platform that was not given one (docs/operations/clusters.md). */
function reachable(host) {
  if (host !== '0.0.0.0' && host !== '::') return host;
  const addresses = Object.values(networkInterfaces()).flat();
  const outward = addresses.filter(({ internal, address }) => !internal && !address.startsWith('fe80'));
  return (outward.find(({ family }) => family === 'IPv4') ?? outward[0])?.address ?? '127.0.0.1';
}
