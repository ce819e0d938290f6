/** Bodies of the operator API, made of what the command line was given. */
import { readFileSync } from 'node:fs';
import { Stop } from './stop.mjs';

/** The fields that have a value: JSON has no `undefined`, and a field that was not given keeps what it was. */
export const defined = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** An application, to be made or to be changed. */
export function appFields(given) {
  const limits = defined({
    max_rooms: whole(given['max-rooms'], '--max-rooms'),
    max_members_per_room: whole(given['max-members'], '--max-members'),
  });
  return defined({
    name: given.name,
    webhook_url: given['webhook-url'],
    blocked_webhook_events: given['unblock-all'] ? [] : given.block,
    allowed_destinations: given['all-destinations'] ? [] : given['allow-destination'],
    blocked_destinations: given['all-destinations'] ? [] : given['block-destination'],
    room_limits: Object.keys(limits).length === 0 ? undefined : limits,
  });
}

/** A device. Its password comes from a file, since everybody on the machine can read the arguments of a program. */
export function deviceFields(given) {
  return { password: read(given['password-file']).trim() };
}

/** How a node is drained. `deadline_sec`: seconds until the calls that are left are ended. */
export const nodeDrainFields = (given) => defined({ deadline_sec: whole(given.deadline, '--deadline'), mode: given.mode });

/** A trunk: what has an option of its own, and any other field by `--set`. */
export function trunkFields(given) {
  const file = given['password-file'];
  return defined({
    uri: given.uri,
    inbound_cidrs: given.cidr ?? [],
    username: given.username,
    password: file === undefined ? undefined : read(file).trim(),
    register: given.register,
    max_channels: whole(given['max-channels'], '--max-channels'),
    codecs: given.codec,
    ...settings(given.set ?? []),
  });
}

/** What the value of a field is, where it is not text. */
const KINDS = {
  max_channels: 'number',
  max_cps: 'number',
  priority: 'number',
  weight: 'number',
  register: 'switch',
  user_phone: 'switch',
  trust_identity: 'switch',
  inbound_auth: 'switch',
  srtp_without_tls: 'switch',
  follow_redirects: 'switch',
  apps: 'list',
  codecs: 'list',
  inbound_cidrs: 'list',
  nodes: 'list',
  transfer_hosts: 'list',
};

/** `FIELD=VALUE` of a trunk: `@FILE` is the text of a file, `tls.ca` a field within `tls`. */
function settings(pairs) {
  const fields = {};
  for (const pair of pairs) {
    const equals = pair.indexOf('=');
    if (equals < 1) throw new Stop(`--set needs FIELD=VALUE, not ${pair}`);
    const [name, text] = [pair.slice(0, equals), pair.slice(equals + 1)];
    const value = text.startsWith('@') ? read(text.slice(1)) : text;
    if (name.startsWith('tls.')) fields.tls = { ...fields.tls, [name.slice(4)]: value };
    else fields[name] = ofKind(Object.hasOwn(KINDS, name) ? KINDS[name] : 'text', name, value);
  }
  return fields;
}

function ofKind(kind, name, value) {
  if (kind === 'list') return value === '' ? [] : value.split(',');
  if (kind === 'number') return whole(value, `--set ${name}`);
  if (kind === 'text') return value;
  if (value !== 'true' && value !== 'false') throw new Stop(`--set ${name} must be true or false, not ${value}`);
  return value === 'true';
}

/** A whole number of up to nine digits, or undefined where the option was not given. */
export function whole(text, option) {
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,9}$/.test(text)) throw new Stop(`${option} must be a whole number of at most nine digits, not "${text}"`);
  return Number(text);
}

function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Stop(`cannot read ${file} (${error.code ?? error.message})`);
  }
}
