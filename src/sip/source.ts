/**
 * The source that a limit counts for an address: an IPv4 address, or the /64 of an IPv6 one. A host on IPv6 owns a /64
 * at least, and can send from each address in it.
 */

/** The source of an address. An IPv4 address in IPv6 clothes (`::ffff:192.0.2.1`) is its IPv4 address. */
export function sourceOf(host: string): string {
  if (!host.includes(':')) return host;
  const mapped = /^::ffff:([0-9.]+)$/i.exec(host)?.[1];
  if (mapped !== undefined) return mapped;
  const [first = [], last = []] = host
    .toLowerCase()
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':')));
  const zeros = new Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0');
  return [...first, ...zeros, ...last].slice(0, 4).join(':');
}
