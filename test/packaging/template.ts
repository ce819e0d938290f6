/**
 * The part of Helm's templates that our chart is written in, for machines without helm: values, `if`, `else`, `range`
 * over a map, and `quote`, `toYaml`, `nindent`, `add`. Anything else is an error. Where helm is installed, the test
 * holds this against it.
 */

/** What a template is rendered with. */
export interface Context {
  readonly Values: object;
  readonly Release: object;
  readonly Chart: object;
}

type Scope = Readonly<Record<string, unknown>>;
interface Block {
  readonly body: readonly Node[];
  readonly otherwise: readonly Node[];
}
type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly expression: string }
  | ({ readonly kind: 'if'; readonly expression: string } & Block)
  | ({ readonly kind: 'range'; readonly key: string; readonly value: string; readonly expression: string } & Block);

/** The text of a template. Throws for what is not in the subset, and for a value that there is not. */
export function render(template: string, context: Context): string {
  const parts = template.split(/(\{\{-?[\s\S]*?-?\}\})/);
  const tokens = parts.map((part, at) => {
    // A dash eats the white space on its side.
    const before = parts[at - 1]?.endsWith('-}}') === true && at % 2 === 0 ? part.trimStart() : part;
    return parts[at + 1]?.startsWith('{{-') === true && at % 2 === 0 ? before.trimEnd() : before;
  });
  const queue = tokens.map((part, at): { readonly tag: boolean; readonly text: string } =>
    at % 2 === 0 ? { tag: false, text: part } : { tag: true, text: part.replace(/^\{\{-?\s*|\s*-?\}\}$/g, '') },
  );
  const { nodes, end } = parse(queue, 0);
  if (end !== queue.length) throw new Error('an end too many');
  return write(nodes, { $: context });
}

function parse(
  queue: readonly { readonly tag: boolean; readonly text: string }[],
  from: number,
): { nodes: readonly Node[]; end: number } {
  const nodes: Node[] = [];
  let at = from;
  while (at < queue.length) {
    const { tag, text } = queue[at] ?? { tag: false, text: '' };
    if (!tag) nodes.push({ kind: 'text', text });
    else if (text === 'end' || text === 'else') return { nodes, end: at };
    else {
      const [, word, rest = ''] = /^(if|range)\s+(.*)$/.exec(text) ?? [];
      if (word === undefined) nodes.push({ kind: 'value', expression: text });
      else {
        const body = parse(queue, at + 1);
        const isElse = queue[body.end]?.text === 'else';
        const otherwise = isElse ? parse(queue, body.end + 1) : { nodes: [], end: body.end };
        if (queue[otherwise.end]?.text !== 'end') throw new Error(`${text}: has no end`);
        const block = { body: body.nodes, otherwise: otherwise.nodes };
        const [, key = '', value = '', over = ''] = /^\$(\w+), \$(\w+) := (.*)$/.exec(rest) ?? [];
        if (word === 'if') nodes.push({ kind: 'if', expression: rest, ...block });
        else if (key === '') throw new Error(`${text}: only \`range $key, $value := …\` is known`);
        else nodes.push({ kind: 'range', key, value, expression: over, ...block });
        at = otherwise.end;
      }
    }
    at += 1;
  }
  return { nodes, end: at };
}

const write = (nodes: readonly Node[], scope: Scope): string => nodes.map((node) => written(node, scope)).join('');

function written(node: Node, scope: Scope): string {
  if (node.kind === 'text') return node.text;
  const found = evaluate(node.expression, scope);
  if (node.kind === 'value') return textOf(found);
  if (node.kind === 'if') return write(isTrue(found) ? node.body : node.otherwise, scope);
  if (typeof found !== 'object' || found === null) throw new Error(`${node.expression}: is no map`);
  // Go goes through a map in the order of its keys.
  const entries = Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, value]) => write(node.body, { ...scope, [node.key]: key, [node.value]: value })).join('');
}

const isTrue = (value: unknown): boolean =>
  typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);

function textOf(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new Error(`${JSON.stringify(value)}: is no text`);
}

/** A pipeline: the result of each part is the last argument of the next. */
function evaluate(expression: string, scope: Scope): unknown {
  return expression.split('|').reduce<unknown>((piped, part, at) => {
    const [name = '', ...words] = part.trim().split(/\s+/);
    const given = [...words.map((word) => atom(word, scope)), ...(at === 0 ? [] : [piped])];
    if (words.length === 0 && at === 0) return atom(name, scope);
    return apply(name, given);
  }, undefined);
}

function apply(name: string, given: readonly unknown[]): unknown {
  const [first, second] = given;
  switch (name) {
    case 'quote':
      return JSON.stringify(textOf(first));
    case 'toYaml':
      // Flow style is YAML too, but for a list that may go on one that stands before it.
      return Array.isArray(first) ? first.map((each) => `- ${JSON.stringify(each)}`).join('\n') : JSON.stringify(first);
    case 'nindent':
      return `\n${textOf(second)}`.replaceAll('\n', `\n${' '.repeat(Number(first))}`);
    case 'add':
      return given.reduce<number>((sum, each) => sum + Number(each), 0);
    default:
      throw new Error(`${name}: is not in the subset`);
  }
}

function atom(word: string, scope: Scope): unknown {
  if (/^\d+$/.test(word)) return Number(word);
  const [, variable, path = ''] = /^\$(\w+)((?:\.\w+)*)$/.exec(word) ?? [undefined, '$', word];
  if (!path.startsWith('.') && variable === '$') throw new Error(`${word}: is not in the subset`);
  let value: unknown = scope[variable ?? '$'];
  for (const name of path.split('.').slice(1)) {
    const entry = typeof value === 'object' && value !== null ? Object.entries(value).find(([key]) => key === name) : undefined;
    if (entry === undefined) throw new Error(`${word}: there is no such value`);
    value = entry[1];
  }
  return value;
}
