/** The command line: which command it names, with which words and options; and the help. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { COMMANDS } from './commands.mjs';
import { Stop } from './stop.mjs';

const TEXT = { type: 'string' };
const TEXTS = { type: 'string', multiple: true };
const SWITCH = { type: 'boolean' };

/** Every command takes these. */
const COMMON = { url: TEXT, 'data-dir': TEXT, json: SWITCH, help: { ...SWITCH, short: 'h' }, version: SWITCH };
const COMMON_HELP = `Options of every command:
  --url URL        where the platform listens (SIDETONE_URL, else HTTP_HOST and HTTP_PORT, else http://127.0.0.1:8080)
  --data-dir DIR   where operator.token is (DATA_DIR, else ./data)
  --json           print the answer as JSON
  --help           this help; after a command, that of the command
  --version        the release of these files; those of running nodes: sidetone nodes list
`;

const COLUMNS = 120;

/** The options in a usage: `--app APP` has a text, `[--block EVENT]...` several, `[--sip]` none. */
function optionsOf(usage) {
  const found = usage.matchAll(/--([a-z-]+)( [A-Za-z|=]+)?(\]?\.\.\.)?/g);
  return Object.fromEntries(
    [...found].map(([, name, value, many]) => [name, value === undefined ? SWITCH : many === undefined ? TEXT : TEXTS]),
  );
}

/** The words that follow the command: those in capitals that are no option's. */
const wordsOf = (usage) => usage.replace(/\[?--[a-z-]+( [A-Za-z|=]+)?\]?/g, '').match(/\b[A-Z][A-Z_]*\b/g) ?? [];

/** The field of the API that a word stands for, where that is not the word itself in small letters. */
const FIELDS = { APP: 'app_uuid', NODE: 'node_id', SESSION: 'session_uuid', TERMINAL: 'terminal_number' };

/** What `--json` prints where the answer has no body: what was done, and to what. */
const doneOf = (name, takes, words) =>
  Object.fromEntries([['done', name], ...takes.map((word, at) => [FIELDS[word] ?? word.toLowerCase(), words[at]])]);

/** How a word begins, by its name in the usage. Some commands take the number first and some the application. */
const BEGINNINGS = { APP: 'app_', NUMBER: '+', WEBHOOK_ID: 'evt_' };

/** The options in a usage that are not in brackets. */
const requiredOf = (usage) =>
  [...usage.replace(/\[[^\]]*\](\.\.\.)?/g, '').matchAll(/--([a-z-]+) [A-Z]/g)].map(([, name]) => name);

const ALL_OPTIONS = Object.assign({}, ...Object.values(COMMANDS).map(({ usage }) => optionsOf(usage)), COMMON);

/**
 * `{text}`, which is to be printed, or `{command, words, given, done}`: a command, the words after it, the options by
 * name, and what to print for an answer without a body. Throws Stop for what no command takes.
 */
export function readCommandLine(args) {
  const { values: given, positionals } = parsed(args);
  if (given.version) return { text: release() };
  if (positionals[0] === 'help') return { text: helpOf(positionals.slice(1)) };
  if (given.help || positionals.length === 0) return { text: helpOf(positionals) };
  // `calls` alone is the list of calls, as `calls list` is.
  if (positionals.length === 1 && positionals[0] === 'calls') positionals.push('list');
  const length = Object.hasOwn(COMMANDS, positionals[0]) ? 1 : 2;
  const name = positionals.slice(0, length).join(' ');
  if (!Object.hasOwn(COMMANDS, name)) throw new Stop(unknown(name, positionals[0]));
  const command = COMMANDS[name];
  const words = positionals.slice(length);
  const takes = wordsOf(command.usage);
  if (words.length !== takes.length)
    throw new Stop(`${name} takes ${takes.length} argument${takes.length === 1 ? '' : 's'}: sidetone ${command.usage}`);
  for (const [at, word] of takes.entries()) {
    // A variable that is not set, in a script: the path would be that of something else.
    if (words[at].trim() === '') throw new Stop(`${word} is empty: sidetone ${command.usage}`);
    if (Object.hasOwn(BEGINNINGS, word) && !words[at].startsWith(BEGINNINGS[word]))
      throw new Stop(`${word} begins with ${BEGINNINGS[word]}, and "${words[at]}" does not: sidetone ${command.usage}`);
  }
  const options = { ...optionsOf(command.usage), ...COMMON };
  for (const option of Object.keys(given))
    if (!Object.hasOwn(options, option)) throw new Stop(`${name} takes no --${option}: sidetone ${command.usage}`);
  for (const option of requiredOf(command.usage))
    if (given[option] === undefined) throw new Stop(`${name} needs --${option}: sidetone ${command.usage}`);
  return { command, words, given, done: doneOf(name, takes, words) };
}

/** The release, as `package.json` names it. */
const release = () => JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')).version;

function parsed(args) {
  try {
    return parseArgs({ args, options: ALL_OPTIONS, allowPositionals: true });
  } catch (error) {
    const name = /^Option '(?:-\w, )?(--[a-z-]+)[^']*' argument (?:is ambiguous|missing)/.exec(error.message)?.[1];
    if (name !== undefined)
      throw new Stop(`${name} needs a value; one that begins with - is written ${name}=VALUE (sidetone --help)`);
    // What Node says after the first sentence is about its own rules.
    throw new Stop(`${error.message.split('\n')[0].split('. ')[0]} (sidetone --help)`);
  }
}

/** What is wrong with a command that there is not: `trunks` alone lacks the second word. */
function unknown(name, first) {
  const known = Object.keys(COMMANDS).filter((each) => each.startsWith(`${first} `));
  if (known.length === 0) return `unknown command: ${name} (sidetone --help)`;
  return `${name === first ? 'incomplete' : 'unknown'} command: ${name}; there is ${known.join(', ')} (sidetone ${first} --help)`;
}

/** The help of all commands, or of those that begin with these words. Throws Stop where none does. */
function helpOf(words) {
  const named = Object.entries(COMMANDS).filter(
    ([name]) => `${name} `.startsWith(`${words.slice(0, 2).join(' ')} `.trimStart()) || name === words[0],
  );
  if (named.length === 0) throw new Stop(unknown(words.slice(0, 2).join(' '), words[0]));
  return `Usage: sidetone <command> [options]\n\n${named.map(([, command]) => helpLines(command)).join('\n')}\n\n${COMMON_HELP}`;
}

function helpLines({ usage, about }) {
  const indent = ' '.repeat(6);
  const explained = about === undefined ? [] : wrapped(about.split(' '), indent);
  return [...wrapped(usage.match(/\[[^\]]*\](\.\.\.)?|\S+/g), '  ', indent), ...explained].join('\n');
}

/** Pieces in lines of at most COLUMNS; the first begins with `first`, each other one with `then`. */
function wrapped(pieces, first, then = first) {
  const lines = [];
  let line = first;
  for (const piece of pieces) {
    if (line.trim() !== '' && line.length + 1 + piece.length > COLUMNS) {
      lines.push(line);
      line = then;
    }
    line += line.trim() === '' ? piece : ` ${piece}`;
  }
  return [...lines, line];
}
