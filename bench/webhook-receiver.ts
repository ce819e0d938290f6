/**
 * A receiver in a process of its own: verifies nothing, answers 204, counts, and checks that each Session's steps rise.
 * Prints a line on request.
 */
const last = new Map<string, number>();
let received = 0;
let reordered = 0;
const latencies: number[] = [];
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    if (request.method === 'GET') {
      if (request.url.endsWith('?reset')) latencies.length = 0;
      const sorted = latencies.slice(-20_000).sort((a, b) => a - b);
      const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
      return Response.json({ received, reordered, p50: at(0.5), p99: at(0.99) });
    }
    const { session_uuid: session, step, sent } = JSON.parse(await request.text());
    received += 1;
    if (step <= (last.get(session) ?? -1)) reordered += 1;
    last.set(session, step);
    if (latencies.length < 1_000_000) latencies.push(performance.timeOrigin + performance.now() - sent);
    return new Response(null, { status: 204 });
  },
});
console.log(server.port);
