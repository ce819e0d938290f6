// Records every call, and copies the recording into a bucket of the application when it is finished.
// (The platform itself can keep all recordings in a bucket: RECORDINGS=s3://… of its operator.)
// Node with the package aws4fetch (it is there in a clone that was started; elsewhere npm install aws4fetch):
//   APP=app_… KEY=… SECRET=… BUCKET=https://s3.eu-central-1.amazonaws.com/my-calls AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… node recordings-to-s3.mjs
import { createServer } from 'node:http';
import { AwsClient } from 'aws4fetch';
import { call, remember, verified } from './platform.mjs';

const { PORT = '9000', BUCKET } = process.env;
const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION } = process.env;
const unset = ['APP', 'KEY', 'SECRET', 'BUCKET', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'].filter((name) => !process.env[name]);
if (unset.length > 0) {
  console.error(`set ${unset.join(', ')}: \`bin/sidetone apps create NAME\` prints APP, KEY and SECRET, the head of this file says the rest`);
  process.exit(1);
}

// Without AWS_REGION the region is that of the URL. Nothing is retried here: the platform delivers the event again.
const keys = { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY };
const store = new AwsClient({ ...keys, service: 's3', region: AWS_REGION, retries: 0 });

const order = (event, path, body) => call('POST', `/v1/sessions/${event.session_uuid}${path}`, body);

const steps = {
  'session.created': (event) => order(event, '/answer', {}),
  'session.answered': (event) => order(event, '/recordings', { direction: 'both', channels: 'mono' }),
  'recording.ended': async (event) => {
    // The URL is signed: it takes no credentials. It stays valid until `expires_at`.
    const recording = await fetch(event.pull_url);
    // One that was removed meanwhile does not come back.
    if (recording.status === 404 || recording.status === 410) return console.log('recording', recording.status);
    if (!recording.ok) throw new Error(`recording ${recording.status}`);
    const name = `${event.recording_uuid}.wav`;
    // A call of an hour at 8 kHz has 58 MB. For longer ones send the body in parts (a multipart upload).
    const sent = await store.fetch(`${BUCKET}/${name}`, {
      method: 'PUT',
      headers: { 'content-type': 'audio/wav' },
      body: await recording.arrayBuffer(),
    });
    if (!sent.ok) throw new Error(`the bucket answered ${sent.status}: ${await sent.text()}`);
    console.log('stored', name, sent.status);
  },
};

const server = createServer(async (request, response) => {
  try {
    const raw = await verified(request, response);
    if (raw === undefined) return;
    const event = JSON.parse(raw);
    // What must not be lost is done before the answer: without a 2xx the platform delivers the event again.
    await steps[event.event]?.(event);
    remember(request);
    response.writeHead(204).end();
    console.log(event.event, event.session_uuid);
  } catch (error) {
    response.writeHead(500).end();
    console.log('failed:', error.message, error.cause?.message ?? '');
  }
});
server.on('error', ({ message }) => {
  console.error(`${message}: set PORT to another one`);
  process.exit(1);
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`waiting for events on http://127.0.0.1:${server.address().port}/`));
