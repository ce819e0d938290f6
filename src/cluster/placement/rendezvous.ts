/**
 * The home of something that has no row of its own: the node with the highest hash of both names (rendezvous hashing).
 */

/** FNV-1a, 32 bits, and a finisher that spreads names which differ in their last letters only. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

/** The node of a name. It is undefined only when there is no node. A node that comes or goes moves only what it has. */
export function homeOf(name: string, nodeIds: readonly string[]): string | undefined {
  let best: { readonly nodeId: string; readonly weight: number } | undefined;
  for (const nodeId of nodeIds) {
    const weight = hash(`${nodeId} ${name}`);
    if (best === undefined || weight > best.weight || (weight === best.weight && nodeId > best.nodeId)) best = { nodeId, weight };
  }
  return best?.nodeId;
}
