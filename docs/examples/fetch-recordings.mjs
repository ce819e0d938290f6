// Fetches the recordings that have ended since the last time into a folder, for cron. One that could not be fetched, or has not
// ended yet, is looked for again the next time.
// Plain Node: APP=app_… KEY=… FOLDER=/var/lib/calls node fetch-recordings.mjs
import { createWriteStream, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

const { APP, KEY, FOLDER, SIDETONE_URL = 'http://127.0.0.1:8080' } = process.env;
const unset = ['APP', 'KEY', 'FOLDER'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP and KEY, the head of this file says the rest`);
  process.exit(1);
}

/** Recordings that began before that time are in the folder, or gone. */
const sinceFile = join(FOLDER, 'since');
const since = existsSync(sinceFile) ? readFileSync(sinceFile, 'utf8') : '1970-01-01T00:00:00.000Z';
const missing = [];

try {
  mkdirSync(FOLDER, { recursive: true });
  let newest = since;
  let after = '';
  do {
    const query = new URLSearchParams({ created_after: since, after });
    const response = await fetch(`${SIDETONE_URL}/v1/recordings?${query}`, { headers: { authorization: `Bearer ${APP}:${KEY}` } });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${response.status} ${answer.message}`);
    for (const recording of answer.recordings) {
      if (recording.created_at > newest) newest = recording.created_at;
      if (!(await fetched(recording))) missing.push(recording.created_at);
    }
    after = answer.after;
  } while (after !== '');
  // The next time begins a minute before the first one that is missing, as one may be listed a moment after a newer one.
  writeFileSync(sinceFile, new Date(Math.max(0, Date.parse(missing.sort()[0] ?? newest) - 60_000)).toISOString());
} catch (error) {
  console.log('failed:', error.message, error.cause?.message ?? '');
  process.exitCode = 1;
}

/** Fetches one recording. False where that is to be tried again. */
async function fetched({ recording_uuid, state, media_url, session_uuid, room_id, duration }) {
  const file = join(FOLDER, `${recording_uuid}.wav`);
  if (existsSync(file)) return true;
  if (state === 'active') return false;
  // The URL is signed: it takes no credentials.
  const response = await fetch(media_url);
  if (!response.ok) {
    console.log(recording_uuid, response.status);
    // A file that is gone does not come back.
    if (response.status === 404 || response.status === 410) return true;
    process.exitCode = 1;
    return false;
  }
  // A body that breaks off throws: only whole files have the name.
  await pipeline(response.body, createWriteStream(`${file}.part`));
  renameSync(`${file}.part`, file);
  console.log('fetched', recording_uuid, session_uuid ?? room_id, duration);
  return true;
}
