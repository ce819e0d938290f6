/** Writes a message as bytes (RFC 3261 §7). Content-Length is computed from the body and always written (§20.14). */
import { displayedName, type SipMessage } from './message.ts';

const encoder = new TextEncoder();

/** The bytes of a message. Header values must have no CR or LF: neither the parser nor this code makes such values. */
export function serialize(message: SipMessage): Uint8Array {
  let head =
    message.kind === 'request'
      ? `${message.method} ${message.uri} SIP/2.0\r\n`
      : `SIP/2.0 ${message.status} ${message.reason}\r\n`;
  const { names, values } = message.headers;
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    if (name === undefined || name === 'content-length') continue;
    head += `${displayedName(name)}: ${values[i]}\r\n`;
  }
  head += `Content-Length: ${message.body.length}\r\n\r\n`;
  const start = encoder.encode(head);
  if (message.body.length === 0) return start;
  const bytes = new Uint8Array(start.length + message.body.length);
  bytes.set(start);
  bytes.set(message.body, start.length);
  return bytes;
}
