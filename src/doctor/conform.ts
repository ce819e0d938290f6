/**
 * `sidetone conform FILE`: holds the log of a receiver against the emission contract. The file has a line of JSON for
 * each delivery, `{webhook_id, received_at, body}`, in the order of receipt; `body` is the body as text, or an object.
 * Exits with 0, with 1 and a line for each breach, or with 2 where the file cannot be read or holds no delivery.
 * `--open`: calls may still run, so nothing is missing yet. `--json`: `{events, deliveries, breaches: [{where, what}],
 * more}` instead, where `more` counts those left out.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { EmissionChecker } from '../event/conformance/emission-checker.ts';
import { leave } from './leave.ts';

const BREACHES_SHOWN = 1_000;

const [file] = process.argv.slice(2).filter((each) => !each.startsWith('--'));
const isOpen = process.argv.includes('--open');
const isJson = process.argv.includes('--json');
await leave(file === undefined ? usage() : await conform(file));

function usage(): 2 {
  process.stderr.write('sidetone: conform needs a FILE\n');
  return 2;
}

async function conform(path: string): Promise<0 | 1 | 2> {
  const checker = new EmissionChecker();
  let line = 0;
  let deliveries = 0;
  let count = 0;
  const breaches: { readonly where: string; readonly what: string }[] = [];
  const tell = (where: string, what: string): void => {
    count += 1;
    if (breaches.length < BREACHES_SHOWN) breaches.push({ where, what });
  };
  try {
    for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
      line += 1;
      if (text.trim() === '') continue;
      deliveries += 1;
      const delivery = parsed(text);
      if (delivery === undefined) tell(`line ${line}`, 'is not {webhook_id, received_at, body}');
      else for (const wrong of checker.take(delivery.webhookId, delivery.body)) tell(`line ${line}`, wrong);
    }
  } catch (error) {
    process.stderr.write(
      `sidetone: ${path} cannot be read (${error instanceof Error && 'code' in error ? String(error.code) : String(error)})\n`,
    );
    return 2;
  }
  if (deliveries === 0) {
    process.stderr.write(`sidetone: ${path} holds no delivery, so that nothing was checked\n`);
    return 2;
  }
  if (!isOpen) for (const missing of checker.end()) tell('at the end', missing);
  const more = count - breaches.length;
  if (isJson) {
    process.stdout.write(`${JSON.stringify({ events: checker.events, deliveries, breaches, more }, null, 2)}\n`);
  } else {
    for (const { where, what } of breaches) process.stdout.write(`${where}: ${what}\n`);
    if (more > 0) process.stdout.write(`and ${more} more\n`);
    process.stderr.write(`${checker.events} events in ${deliveries} deliveries, ${count} breaches\n`);
  }
  return count === 0 ? 0 : 1;
}

function parsed(text: string): { readonly webhookId: string; readonly body: string } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('webhook_id' in value) || !('body' in value)) return undefined;
    const { webhook_id: webhookId, body } = value;
    if (typeof webhookId !== 'string') return undefined;
    return { webhookId, body: typeof body === 'string' ? body : JSON.stringify(body) };
  } catch {
    return undefined;
  }
}
