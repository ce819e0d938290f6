/**
 * Asks servers on loopback over TLS, by the names that it is given, in a process of its own: what the runtime trusts is
 * told before it starts. Writes how each request went as a list in JSON.
 */
import { OutboundError } from '../../src/outbound/outbound.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';

const [port, ...names] = process.argv.slice(2);
const outbound = createOutbound(['127.0.0.0/8'], async () => ['127.0.0.1']);

async function fetched(url: string): Promise<string> {
  const { body } = await outbound.fetch({ url, method: 'GET', headers: {}, signal: AbortSignal.timeout(10_000) });
  return await new Response(body).text();
}

async function got(url: string): Promise<string> {
  const { body } = await outbound.get({ url, headers: {}, connectTimeoutMs: 10_000, responseTimeoutMs: 10_000, redirects: 0 });
  const part = await body.read();
  body.close();
  return new TextDecoder().decode(part);
}

const went: string[] = [];
for (const name of names)
  for (const ask of [fetched, got])
    went.push(await ask(`https://${name}:${port}/`).catch((error) => (error instanceof OutboundError ? error.failure : 'bug')));
console.log(JSON.stringify(went));
