/**
 * Chooses the node of a new Session: the one that has the connection of the device that is dialled, near the Session or
 * Room that it names, else on the better of two nodes drawn at random, and here where this node is within 10 % of that
 * one. A node that drains, is a suspect, or lacks the label that the trunk asks for takes none, nor one whose trunks
 * have no free channel while another's have.
 */
import type { NodeRow } from '../../database/node/nodes.ts';
import { edgeOf } from '../../sip/message/path.ts';
import { parseUri } from '../../sip/message/uri.ts';
import type { Binding } from '../../sip/registrar.ts';
import { beatLoadOf } from '../membership/beat-load.ts';

const LOCAL_PREFERENCE = 0.1;

/** The part of a trunk that decides where it may be used. */
export interface PlacedTrunk {
  readonly name: string;
  /** Labels, of which a node needs one. Undefined: any node will do. */
  readonly nodes: readonly string[] | undefined;
  readonly maxChannels: number | undefined;
}

/** A contact of a device user, and the node that it registered with. */
interface Flow {
  readonly nodeId: string;
  readonly binding: Pick<Binding, 'transport' | 'host' | 'uri' | 'path'>;
}

/**
 * Whether only the node of its REGISTER reaches a contact: over its connection, or through its NAT. A proxy before it
 * takes messages and connections from all nodes, unless it is behind a NAT itself.
 */
function isBound({ transport, host, uri, path }: Flow['binding']): boolean {
  if (path !== '') return edgeOf(path, transport)?.host !== host;
  return transport !== 'udp' || parseUri(uri)?.host !== host;
}

/**
 * The node that reaches most of those contacts of a device that one node alone reaches, this one where several do.
 * The result is undefined where any node reaches all of them.
 */
export function nodeOfDevice(own: string, flows: readonly Flow[]): string | undefined {
  const counts = new Map<string, number>();
  for (const { nodeId, binding } of flows) if (isBound(binding)) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  const most = Math.max(...counts.values());
  const [first] = [...counts].filter(([, count]) => count === most);
  return counts.get(own) === most ? own : first?.[0];
}

/**
 * Returns those of the nodes that may use one of the trunks of a dial, and one with a free channel if there is any:
 * `all` have told what they hold. Where there are no trunks, any node can say so.
 */
export function reaching(trunks: readonly PlacedTrunk[], nodes: readonly NodeRow[], all: readonly NodeRow[]): readonly NodeRow[] {
  if (trunks.every((trunk) => trunk.nodes === undefined)) return nodes;
  const held = all.map((row) => beatLoadOf(row).channels);
  const inUse = (name: string) => held.reduce((sum, channels) => sum + (channels[name] ?? 0), 0);
  const free = trunks.filter(({ name, maxChannels = Infinity }) => inUse(name) < maxChannels);
  const able = (some: readonly PlacedTrunk[]) =>
    nodes.filter((row) => some.some((trunk) => trunk.nodes?.some((label) => row.labels.includes(label)) ?? true));
  const first = able(free);
  return first.length > 0 ? first : able(trunks);
}

/** The node for a new Session among those that may take it. Undefined: none may. `random` gives numbers in [0, 1). */
export function choose(own: string, candidates: readonly NodeRow[], random: () => number): string | undefined {
  if (candidates.length === 0) return undefined;
  const first = Math.floor(random() * candidates.length);
  const second = (first + 1 + Math.floor(random() * Math.max(0, candidates.length - 1))) % candidates.length;
  const drawn = [candidates[first], candidates[second]].flatMap((each) => (each === undefined ? [] : [each]));
  const [best] = drawn.sort((a, b) => beatLoadOf(a).load - beatLoadOf(b).load);
  const here = candidates.find(({ nodeId }) => nodeId === own);
  if (best === undefined) return undefined;
  return here !== undefined && beatLoadOf(here).load <= beatLoadOf(best).load + LOCAL_PREFERENCE ? own : best.nodeId;
}
