// Fetches the recordings that have ended since the last time into a folder, for cron. One that could not be fetched is tried again
// the next time. It reads the log of events, which takes the operator's token; a receiver of webhooks can keep them itself instead.
// Plain Node: APP=app_… OPERATOR_READ_TOKEN=… FOLDER=/var/lib/calls node fetch-recordings.mjs
import { createWriteStream, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

const { APP, OPERATOR_READ_TOKEN, FOLDER, SIDETONE_URL = 'http://127.0.0.1:8080' } = process.env;
if (!APP || !OPERATOR_READ_TOKEN || !FOLDER)
  throw new Error('set APP, FOLDER, and OPERATOR_READ_TOKEN as the platform was started with it');

mkdirSync(FOLDER, { recursive: true });
/** How far the log of events has been read. */
const position = join(FOLDER, 'position');
let after = existsSync(position) ? readFileSync(position, 'utf8') : '0';
let isWhole = true;

try {
  let next;
  do {
    const query = new URLSearchParams({ app_uuid: APP, event: 'recording.ended', after, limit: '100' });
    const headers = { authorization: `Bearer ${OPERATOR_READ_TOKEN}` };
    const response = await fetch(`${SIDETONE_URL}/operator/v1/events?${query}`, { headers });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${response.status} ${answer.message}`);
    for (const { payload, position: at } of answer.events) {
      if (!(await fetched(payload))) isWhole = false;
      // The next time begins before the first one that is missing.
      if (isWhole) writeFileSync(position, String(at));
    }
    next = answer.next;
    after = next;
  } while (next !== '');
} catch (error) {
  isWhole = false;
  console.log('failed:', error.message, error.cause?.message ?? '');
}
process.exitCode = isWhole ? 0 : 1;

/** Fetches one recording. False where that is to be tried again. */
async function fetched({ recording_uuid, pull_url, session_uuid, room_id, duration }) {
  const file = join(FOLDER, `${recording_uuid}.wav`);
  if (existsSync(file)) return true;
  // The URL is signed: it takes no credentials.
  const response = await fetch(pull_url);
  if (!response.ok) {
    console.log(recording_uuid, response.status);
    // Neither an URL that has expired (403) nor a file that is gone (404, 410) comes back.
    return [403, 404, 410].includes(response.status);
  }
  // A body that breaks off throws: only whole files have the name.
  await pipeline(response.body, createWriteStream(`${file}.part`));
  renameSync(`${file}.part`, file);
  console.log('fetched', recording_uuid, session_uuid ?? room_id, duration);
  return true;
}
