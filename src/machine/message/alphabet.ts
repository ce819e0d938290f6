/**
 * The alphabets of short messages: the GSM 7 bit default alphabet with its extension table (3GPP TS 23.038 §6.2.1), and
 * UCS-2. National language shift tables are left out: what they would carry goes as UCS-2.
 */

export type Encoding = 'gsm7' | 'ucs2';

const ESCAPE = 0x1b;
const BASIC =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u001bÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?' +
  '¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà';
const EXTENSION: Readonly<Record<string, number>> = {
  '\f': 0x0a,
  '^': 0x14,
  '{': 0x28,
  '}': 0x29,
  '\\': 0x2f,
  '[': 0x3c,
  '~': 0x3d,
  ']': 0x3e,
  '|': 0x40,
  '€': 0x65,
};

/** The septets of each character: one, or two where it is reached through the escape. */
const SEPTETS: ReadonlyMap<string, readonly number[]> = new Map<string, readonly number[]>([
  ...[...BASIC].map((letter, code): [string, readonly number[]] => [letter, [code]]).filter(([letter]) => letter !== '\u001b'),
  ...Object.entries(EXTENSION).map(([letter, code]): [string, readonly number[]] => [letter, [ESCAPE, code]]),
]);

/** GSM where every character has a place in its tables, else UCS-2. */
export function encodingOf(text: string): Encoding {
  for (const letter of text) if (!SEPTETS.has(letter)) return 'ucs2';
  return 'gsm7';
}

/**
 * Units that must not be parted: an escape and what it escapes, the two halves of a surrogate pair. Septets of GSM,
 * code units of UCS-2.
 */
export const unitsOf = (text: string, encoding: Encoding): readonly (readonly number[])[] =>
  [...text].map((letter) => (encoding === 'gsm7' ? (SEPTETS.get(letter) ?? [0x3f]) : codeUnits(letter)));

const codeUnits = (letter: string): number[] => letter.split('').map((unit) => unit.charCodeAt(0));

/**
 * Octets as SMPP carries them: a septet an octet, unpacked (SMPP 3.4 §5.2.19, SMSC default alphabet), or UCS-2 in
 * network order.
 */
export function octetsOf(units: readonly number[], encoding: Encoding): Uint8Array {
  if (encoding === 'gsm7') return Uint8Array.from(units);
  const octets = new Uint8Array(units.length * 2);
  for (const [at, unit] of units.entries()) {
    octets[at * 2] = unit >> 8;
    octets[at * 2 + 1] = unit & 0xff;
  }
  return octets;
}

/** The alphabets in which messages come: also those of ISO 8859 that SMPP knows. */
export type IncomingAlphabet = Encoding | 'latin1' | 'cyrillic' | 'hebrew';

export const INCOMING_ALPHABETS: readonly IncomingAlphabet[] = ['gsm7', 'ucs2', 'latin1', 'cyrillic', 'hebrew'];

const LABELS = { ucs2: 'utf-16be', cyrillic: 'iso-8859-5', hebrew: 'iso-8859-8' } as const;

/** Half a surrogate pair is read as U+FFFD; so is NUL, which no text of the database may have. */
export function incomingText(octets: Uint8Array, alphabet: IncomingAlphabet): string {
  const text = alphabet === 'gsm7' ? textOfSeptets(octets) : decoded(octets, alphabet);
  return text.replaceAll('\0', '\ufffd');
}

/** Octets of Latin-1 are characters of the same value; the decoder of that name would read Windows-1252. */
const decoded = (octets: Uint8Array, alphabet: Exclude<IncomingAlphabet, 'gsm7'>): string =>
  alphabet === 'latin1'
    ? Array.from(octets, (octet) => String.fromCharCode(octet)).join('')
    : new TextDecoder(LABELS[alphabet]).decode(octets);

const BASIC_LETTERS = [...BASIC];
const EXTENSION_LETTERS: ReadonlyMap<number, string> = new Map(Object.entries(EXTENSION).map(([letter, code]) => [code, letter]));

/** An escape that begins nothing of the table is a space, and what follows it is read by itself (§6.2.1.1). */
function textOfSeptets(octets: Uint8Array): string {
  let text = '';
  for (let at = 0; at < octets.length; at++) {
    const code = octets[at] ?? 0;
    const escaped = code === ESCAPE ? EXTENSION_LETTERS.get(octets[at + 1] ?? -1) : undefined;
    if (escaped !== undefined) at++;
    text += escaped ?? (code === ESCAPE ? ' ' : (BASIC_LETTERS[code] ?? '\ufffd'));
  }
  return text;
}
