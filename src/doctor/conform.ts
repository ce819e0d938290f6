/**
 * `sidetone conform FILE`: holds the log of a receiver against the emission contract. The file has a line of JSON for
 * each delivery, `{webhook_id, received_at, body}`, in the order of receipt; `body` is the body as text, or as an
 * object. Exits with 0, or with 1 and a line for each breach. `--open`: calls may still run, so nothing is missing yet.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { EmissionChecker } from '../event/conformance/emission-checker.ts';

const BREACHES_SHOWN = 1_000;

const [file] = process.argv.slice(2).filter((each) => !each.startsWith('--'));
const isOpen = process.argv.includes('--open');
process.exit(file === undefined ? usage() : await conform(file));

function usage(): 2 {
  process.stderr.write('sidetone: conform needs a FILE\n');
  return 2;
}

async function conform(path: string): Promise<0 | 1 | 2> {
  const checker = new EmissionChecker();
  let line = 0;
  let breaches = 0;
  const tell = (where: string, what: string): void => {
    breaches += 1;
    if (breaches <= BREACHES_SHOWN) process.stdout.write(`${where}: ${what}\n`);
  };
  try {
    for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
      line += 1;
      if (text.trim() === '') continue;
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
  if (!isOpen) for (const missing of checker.end()) tell('at the end', missing);
  if (breaches > BREACHES_SHOWN) process.stdout.write(`and ${breaches - BREACHES_SHOWN} more\n`);
  process.stderr.write(`${checker.events} events in ${line} deliveries, ${breaches} breaches\n`);
  return breaches === 0 ? 0 : 1;
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
