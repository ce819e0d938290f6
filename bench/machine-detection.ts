/**
 * How often answering machine detection is wrong, on synthetic calls: short answers of people and greetings of
 * machines, said by espeak-ng in several voices, languages and paces, on lines that are clean, noisy, humming, or have
 * music or other people behind the voice. Every call is new from a seed; the voices, sentences and seeds of the
 * evaluation are not those that the detector was tuned with (`tune` runs those).
 *
 *   npm run bench -- machine-detection [tune] [hard] [wrong]
 *
 * `hard` makes calls that rules of time cannot tell apart well: people who answer with two sentences, and machines that
 * pause after a first word. `wrong` lists the calls that were judged wrongly.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { native } from '../src/media/native.ts';
import { seeded } from '../test/support/random.ts';

const RATE = 8_000;
const TIMEOUT_MS = 5_000;
const CALLS = 200;
const tuning = process.argv.includes('tune');
const hard = process.argv.includes('hard');
const root = join(import.meta.dir, '..');

interface Phrases {
  readonly human: readonly string[];
  readonly machine: readonly string[];
}

/** Sentences by language; of each list the evaluation has every second one, beginning with the first. */
const PHRASES: Readonly<Record<string, Phrases>> = {
  en: {
    human: [
      'Hello?',
      'Yes?',
      'Hello, who is this?',
      'Hi, John here.',
      'Good morning.',
      'Hello, Anna speaking.',
      'Yeah, hello?',
      'Hi!',
      'Smith.',
      'Hey, what is up?',
      'Yes, this is Mary.',
      'Good afternoon, Peter Brown.',
      'Hello, hello?',
      'Speaking.',
    ],
    machine: [
      'Hi, you have reached John and Mary. We cannot come to the phone right now. Please leave a message after the tone.',
      'The person you are calling is not available. Please record your message after the beep. When you have finished recording, you may hang up.',
      'Hello. This is Peter. I am away from my desk at the moment. Leave your name and number and I will call you back.',
      'Your call has been forwarded to an automated voice messaging system. Five five five, one two three four is not available. At the tone, please record your message.',
      'Thank you for calling Brown and Partners. Our office is closed. Our hours are nine to five, Monday to Friday.',
      'Sorry I missed your call. Please leave a message.',
      'Hey, it is Anna, you know what to do after the beep.',
      'Welcome to the mailbox of five five five, nine eight seven six. Please leave a message after the signal.',
      'The mobile phone you are calling is switched off. Please try again later.',
      'You have reached the voice mail box of Susan Miller. Please leave your message after the tone. To page this person, press five now.',
    ],
  },
  de: {
    human: ['Hallo?', 'Ja, bitte?', 'Müller.', 'Guten Tag, Schmidt am Apparat.', 'Ja, hallo?', 'Wer ist da?'],
    machine: [
      'Guten Tag, Sie sind mit dem Anschluss von Familie Müller verbunden. Leider sind wir nicht zu Hause. Bitte sprechen Sie nach dem Signalton.',
      'Der gewünschte Gesprächspartner ist zur Zeit nicht erreichbar. Bitte hinterlassen Sie eine Nachricht.',
      'Hallo, hier ist die Mailbox von Peter. Bitte hinterlassen Sie eine Nachricht nach dem Ton.',
      'Vielen Dank für Ihren Anruf. Unser Büro ist im Moment nicht besetzt.',
    ],
  },
  fr: {
    human: ['Allô?', 'Oui, allô?', 'Bonjour.', 'Oui?', 'Allô, qui est là?', 'Bonjour, Marie à l’appareil.'],
    machine: [
      'Bonjour, vous êtes bien chez Marie et Paul. Nous sommes absents pour le moment. Laissez-nous un message après le bip sonore.',
      'Votre correspondant n’est pas disponible. Veuillez laisser un message après le signal sonore.',
      'Bonjour, je ne peux pas vous répondre. Merci de laisser vos coordonnées, je vous rappellerai.',
      'Vous êtes sur la messagerie vocale du zéro six, douze, trente quatre. Laissez un message.',
    ],
  },
  es: {
    human: ['¿Diga?', '¿Sí?', 'Hola.', '¿Sí, dígame?', '¿Quién es?', 'Hola, soy Ana.'],
    machine: [
      'Hola, ha llamado a la familia García. Ahora no podemos atenderle. Deje su mensaje después de la señal.',
      'El teléfono al que llama está apagado o fuera de cobertura. Por favor, inténtelo más tarde.',
      'Buzón de voz de Ana. Por favor, deje un mensaje después del tono.',
      'Gracias por llamar. Nuestro horario es de nueve a cinco, de lunes a viernes.',
    ],
  },
};
const ACCENTS: Readonly<Record<string, readonly string[]>> = {
  en: ['en-us', 'en-gb', 'en-gb-scotland', 'en-us', 'en-gb', 'en-gb-x-rp'],
  de: ['de'],
  fr: ['fr-fr'],
  es: ['es', 'es-419'],
};
const VARIANTS = tuning ? ['+m1', '+m3', '+f1', '+f3', '+m5'] : ['', '+m2', '+m4', '+m7', '+f2', '+f4', '+f5'];
const LINES = ['clean', 'noise 25 dB', 'noise 15 dB', 'hum', 'music 20 dB', 'voices 20 dB'] as const;
type Line = (typeof LINES)[number];

const folder = mkdtempSync(join(tmpdir(), 'answers-'));
const texts = new Map<string, Float32Array>();

/** What a voice says, without the silence around it, at a mean power of 1. */
function say(voice: string, pace: number, pitch: number, text: string): Float32Array {
  const key = [voice, pace, pitch, text].join('|');
  const known = texts.get(key);
  if (known !== undefined) return known;
  const made = spawnSync('espeak-ng', ['-v', voice, '-s', `${pace}`, '-p', `${pitch}`, '--stdout', text], {
    maxBuffer: 64 << 20,
  });
  if (made.status !== 0) throw new Error(`espeak-ng: ${made.error ?? made.stderr.toString()}`);
  const wav = new Uint8Array(made.stdout);
  const reader = native.wavCreate(RATE);
  const out = new Int16Array(65_536);
  const status = new Uint32Array(4);
  const pcm: number[] = [];
  for (let at = 0; at < wav.length; at += status[0] ?? 0) {
    native.wavRead(reader, wav.subarray(at, at + 8_192), out, status);
    for (const sample of out.subarray(0, status[1])) pcm.push(sample);
    if (status[0] === 0 && status[1] === 0) break;
  }
  const loud = (sample: number) => Math.abs(sample) > 300;
  const first = Math.max(0, pcm.findIndex(loud));
  const last = pcm.findLastIndex(loud) + 1;
  const said = Float32Array.from(pcm.slice(first, last));
  const power = said.reduce((sum, sample) => sum + sample * sample, 0) / said.length;
  const scaled = said.map((sample) => sample / Math.sqrt(power));
  texts.set(key, scaled);
  return scaled;
}

/** Chords of a plucked instrument, a note each 250 ms, at a mean power of about 1. */
function music(length: number, random: () => number): Float32Array {
  const out = new Float32Array(length);
  const step = RATE / 4;
  for (let at = 0; at < length; at += step) {
    for (let note = 0; note < 3; note++) {
      const hz = 220 * 2 ** (Math.floor(random() * 24) / 12);
      for (let i = 0; i < 2 * step && at + i < length; i++) {
        const fall = Math.exp((-4 * i) / step);
        for (let harmonic = 1; harmonic <= 4; harmonic++)
          out[at + i] = (out[at + i] ?? 0) + (fall * Math.sin((2 * Math.PI * hz * harmonic * i) / RATE)) / harmonic;
      }
    }
  }
  return out;
}

/** What is on the line beside the voice, with a power of -`below` dB against a voice of power 1. */
function background(line: Line, length: number, random: () => number): Float32Array {
  const out = new Float32Array(length);
  if (line === 'hum')
    return out.map((_, i) => 0.05 * (Math.sin((2 * Math.PI * 50 * i) / RATE) + Math.sin((2 * Math.PI * 150 * i) / RATE)));
  const below = Number(/\d+/.exec(line)?.[0] ?? 60);
  const gain = 10 ** (-below / 20);
  if (line.startsWith('music')) return music(length, random).map((sample) => sample * gain);
  if (line.startsWith('voices')) {
    for (const voice of ['en-us+m6', 'en-gb+f1', 'de+m8']) {
      const said = say(voice, 170, 50, PHRASES.en?.machine[1] ?? '');
      const offset = Math.floor(random() * said.length);
      for (let i = 0; i < length; i++) out[i] = (out[i] ?? 0) + ((said[(i + offset) % said.length] ?? 0) * gain) / Math.sqrt(3);
    }
    return out;
  }
  return out.map(() => (random() + random() + random() - 1.5) * 2 * gain);
}

interface Call {
  readonly human: boolean;
  readonly line: Line;
  readonly what: string;
  /** The end of the greeting in ms, and whether a beep follows. */
  readonly greetingEndMs: number;
  readonly beep: boolean;
  readonly path: string;
}

/** One call, which depends on its number alone. */
function make(number: number): Call {
  const random = seeded(number * 7919 + (tuning ? 1 : 500_009));
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const between = (least: number, most: number) => least + (most - least) * random();
  const human = number % 2 === 0;
  const line = LINES[Math.floor(number / 2) % LINES.length] ?? 'clean';
  const language = pick(['en', 'en', 'en', 'de', 'fr', 'es']);
  const { human: short, machine: long } = PHRASES[language] ?? { human: [], machine: [] };
  const text = pick((human ? short : long).filter((_, index) => (index % 2 === 0) !== tuning));
  const voice = pick(ACCENTS[language] ?? []) + pick(VARIANTS);
  const said = say(voice, Math.round(between(135, 185)), Math.round(between(30, 70)), text);
  const parts: Float32Array[] = [new Float32Array(Math.round(RATE * between(0.2, human ? 1.5 : 1.2)))];
  const add = (part: Float32Array) => void parts.push(part);
  const ms = () => Math.round((parts.reduce((sum, part) => sum + part.length, 0) * 1000) / RATE);
  const beep = !human && random() < 0.7;
  if (!human && random() < 0.1) add(music(Math.round(RATE * between(1, 2)), random).map((sample) => sample * 0.7));
  if (hard && !human) {
    add(say(voice, 150, 50, pick(short.filter((phrase) => phrase.length < 9))));
    add(new Float32Array(Math.round(RATE * between(0.5, 1.5))));
  }
  add(said);
  if (hard && human) {
    add(new Float32Array(Math.round(RATE * between(0.1, 0.4))));
    add(say(voice, 150, 50, pick(long).split('.')[0] ?? ''));
  }
  const greetingEndMs = ms();
  if (beep) {
    add(new Float32Array(Math.round(RATE * between(0.1, 1.8))));
    const hz = between(400, 1_800);
    const loud = 10 ** (between(-8, 6) / 20) * Math.SQRT2;
    add(
      Float32Array.from(
        { length: Math.round(RATE * between(0.12, 0.9)) },
        (_, i) => loud * Math.sin((2 * Math.PI * hz * i) / RATE),
      ),
    );
  }
  if (human && random() < 0.3) {
    add(new Float32Array(Math.round(RATE * between(1.3, 2.5))));
    add(said);
  }
  add(new Float32Array(RATE * 6));
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const around = background(line, length, random);
  const level = 32_768 * 10 ** (between(-32, -14) / 20);
  const pcm = new Int16Array(length);
  let at = 0;
  for (const part of parts)
    for (const sample of part) {
      const idle = (random() - 0.5) * 16; // what is left of a telephone line without noise
      pcm[at] = Math.max(-32_768, Math.min(32_767, Math.round((sample + (around[at] ?? 0)) * level + idle)));
      at++;
    }
  const path = join(folder, `${number}.raw`);
  writeFileSync(path, pcm);
  return { human, line, what: `${voice}: ${text}`, greetingEndMs, beep, path };
}

const built = spawnSync('make', ['-s', '-C', 'native', '../build/answers'], { cwd: root, stdio: 'inherit' });
if (built.status !== 0) process.exit(1);
const calls = Array.from({ length: 2 * CALLS }, (_, number) => make(number));
const judged = spawnSync(join(root, 'build/answers'), [`${TIMEOUT_MS}`, ...calls.map(({ path }) => path)], {
  maxBuffer: 64 << 20,
});
rmSync(folder, { recursive: true });
const lines = judged.stdout.toString().trim().split('\n');
const results = calls.map((call, index) => {
  const [verdict = '', afterMs = '', endedMs = '', heardBeep = ''] = (lines[index] ?? '').split(' ');
  return { ...call, verdict, afterMs: Number(afterMs), endedMs: Number(endedMs), heardBeep: heardBeep === '1' };
});

const share = (part: number, of: number) => `${part} of ${of} (${((100 * part) / Math.max(1, of)).toFixed(1)} %)`;
const percentile = (values: readonly number[], part: number) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;
console.log(
  `answering machine detection, ${tuning ? 'tuning' : 'evaluation'}${hard ? ', hard' : ''}: ${results.length} calls, timeout ${TIMEOUT_MS} ms`,
);
for (const human of [true, false]) {
  const own = results.filter((each) => each.human === human);
  const right = human ? 'human' : 'machine';
  const wrong = own.filter(({ verdict }) => verdict !== right && verdict !== 'unknown');
  const unknown = own.filter(({ verdict }) => verdict === 'unknown');
  console.log(`${right}s: wrong ${share(wrong.length, own.length)}, unknown ${share(unknown.length, own.length)}`);
  for (const line of LINES) {
    const there = own.filter((each) => each.line === line);
    const bad = there.filter(({ verdict }) => verdict !== right);
    console.log(`  ${line.padEnd(14)} wrong or unknown ${share(bad.length, there.length)}`);
  }
  const times = own.filter(({ verdict }) => verdict === right).map(({ afterMs }) => afterMs);
  console.log(`  verdict after ${percentile(times, 0.5)} ms (median), ${percentile(times, 0.95)} ms (95 %)`);
}
const machines = results.filter(({ human, verdict }) => !human && verdict === 'machine');
const beeping = machines.filter(({ beep }) => beep);
const silent = machines.filter(({ beep }) => !beep);
console.log(`beeps missed: ${share(beeping.filter(({ heardBeep }) => !heardBeep).length, beeping.length)}`);
console.log(`beeps where there was none: ${share(silent.filter(({ heardBeep }) => heardBeep).length, silent.length)}`);
const early = machines.filter(({ endedMs, greetingEndMs }) => endedMs >= 0 && endedMs < greetingEndMs);
console.log(`greeting told as over too early: ${share(early.length, machines.length)}`);
console.log(`native: ${lines.at(-1)}`);
if (process.argv.includes('wrong')) {
  for (const { human, verdict, line, what, afterMs, beep, heardBeep, endedMs, greetingEndMs } of results) {
    const bad = verdict !== (human ? 'human' : 'machine') || (!human && (beep !== heardBeep || endedMs < greetingEndMs));
    if (bad)
      console.log(
        human ? 'human  ' : 'machine',
        verdict,
        afterMs,
        line,
        `beep ${beep}/${heardBeep} end ${greetingEndMs}/${endedMs}`,
        what,
      );
  }
}
