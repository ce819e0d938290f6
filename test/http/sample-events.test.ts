/**
 * The samples of events, as the API reference shows them and as the operator sends them: the fields and the identifiers
 * that the interface gives each event (Identifier shapes, Events), from a table that was written out of it.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { EVENT_NAMES } from '../../src/event/names.ts';
import { createRecordingUrls } from '../../src/recording-storage/signed-url.ts';
import { openPlatform, type Platform } from './platform.ts';

type Body = Readonly<Record<string, unknown>>;

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const URL_OF = (kind: string) =>
  new RegExp(`^https?://[^/]+/v1/media/rec_${UUID}/${kind}\\?expires=\\d+&signature=[0-9a-f]{64}$`);

/** The shape of a field, wherever it stands. */
const SHAPES: Readonly<Record<string, RegExp>> = {
  aud: new RegExp(`^app_${UUID}$`),
  app_uuid: new RegExp(`^app_${UUID}$`),
  session_uuid: new RegExp(`^${UUID}$`),
  room_id: new RegExp(`^${UUID}$`),
  operation_uuid: new RegExp(`^${UUID}$`),
  message_uuid: new RegExp(`^${UUID}$`),
  recording_uuid: new RegExp(`^rec_${UUID}$`),
  card_uuid: new RegExp(`^card_${UUID}$`),
  cvv_uuid: new RegExp(`^cvv_${UUID}$`),
  live_url: URL_OF('live'),
  timestamp: TIME,
  expires_at: TIME,
  transaction_created_at: TIME,
  currency: /^ils$/,
  terminal_number: /^[0-9]{7}$/,
};

const MEMBER = ['session_uuid', 'room_id'];
const RECORDED = ['session_uuid', 'recording_uuid', 'operation_uuid'];
const VOLUME = [...MEMBER, 'operation_uuid', 'volume', 'direction'];
const ROOM_PLAYBACK = ['room_id', 'operation_uuid', 'urls'];

/** The fields that the interface names, beside `aud`, `event` and `timestamp`. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  'session.created': ['session_uuid', 'caller_id', 'did', 'type'],
  'session.ended': ['session_uuid', 'answered', 'hangup_cause', 'hangup_by', 'hangup_description', 'duration_seconds'],
  'websocket.failed': ['session_uuid', 'reason', 'error'],
  'room.created': ['app_uuid', 'room_id'],
  'room.deleted': ['app_uuid', 'room_id', 'reason'],
  'room.member.joined': MEMBER,
  'room.member.left': [...MEMBER, 'reason'],
  'room.member.muted': MEMBER,
  'room.member.unmuted': MEMBER,
  'room.member.voice_activity_changed': [...MEMBER, 'talking'],
  'room.member.volume_changed': VOLUME,
  'room.member.volume_change_failed': [...VOLUME, 'applied_directions', 'failed_directions'],
  'room.playback.ended': [...ROOM_PLAYBACK, 'reason'],
  'room.playback.failed': [...ROOM_PLAYBACK, 'error'],
  'recording.speech.started': RECORDED,
  'recording.speech.ended': RECORDED,
  'recording.became_available': [...RECORDED, 'pull_url', 'live_url', 'expires_at'],
  'recording.failed': [...RECORDED, 'error', 'pull_url'],
  'recording.ended': [...RECORDED, 'pull_url', 'expires_at', 'duration'],
  'message.status_changed': ['message_uuid'],
  'message.received': ['message_uuid', 'from', 'to', 'text', 'segments', 'missing_segments'],
  'payment.card.collected': ['session_uuid', 'card_uuid', 'payment_method_details'],
  'payment.cvv.collected': ['session_uuid', 'cvv_uuid'],
  'payment.charge.completed': [
    'session_uuid',
    'operation_uuid',
    'amount',
    'currency',
    'provider',
    'terminal_number',
    'status',
    'retryable',
  ],
};

/** What is wrong with the body of an event. */
function faults(name: string, body: Body): readonly string[] {
  const required = ['aud', 'event', 'timestamp', ...(FIELDS[name] ?? ['session_uuid'])];
  const missing = required.filter((field) => !(field in body)).map((field) => `${name} has no ${field}`);
  const shapes: Readonly<Record<string, RegExp>> = {
    ...SHAPES,
    pull_url: name === 'recording.failed' ? /^$/ : URL_OF('pull'),
  };
  const misshapen = Object.entries(body).flatMap(([field, value]) => {
    const isWrong = shapes[field]?.test(String(value)) === false || (field === 'amount' && Number(value) % 100 !== 0);
    return isWrong ? [`${name}: ${field} is ${value}`] : [];
  });
  return [...missing, ...misshapen];
}

describe('the sample of every event has the fields and identifiers of the interface', () => {
  let platform: Platform;
  let app: AppSecrets;
  const recordingUrls = createRecordingUrls({
    masterKey: new Uint8Array(32).fill(3),
    publicUrl: 'http://127.0.0.1:8080',
    ttlSec: 3600,
  });
  beforeAll(async () => {
    platform = await openPlatform({ recordingUrls });
    app = await platform.testStore.store.apps.create({ name: 'samples' });
  });
  afterAll(() => platform.close());

  test('in the API reference', async () => {
    const document = (await platform.raw('/openapi.json')).body;
    const wrong = EVENT_NAMES.flatMap((name) =>
      faults(name, document.webhooks[name].post.requestBody.content['application/json'].example),
    );
    expect(wrong).toEqual([]);
  });

  test('as the operator sends it, with identifiers of its own and URLs that open', async () => {
    /** The body of the sample, as it waits for its delivery. */
    const bodyOf = async (name: string): Promise<Body> => {
      const { status, body } = await platform.operator('POST', `/operator/v1/apps/${app.appUuid}/events`, { event: name });
      expect([name, status]).toEqual([name, 202]);
      const { events } = (await platform.operator('GET', `/operator/v1/events?app_uuid=${app.appUuid}&event=${name}&limit=1000`))
        .body;
      return events.find((each: Body) => each.webhook_id === body.webhook_id).payload;
    };
    const wrong: string[] = [];
    for (const name of EVENT_NAMES) {
      const [one, two] = [await bodyOf(name), await bodyOf(name)];
      wrong.push(...faults(name, one), ...faults(name, two));
      for (const field of [
        'session_uuid',
        'room_id',
        'operation_uuid',
        'message_uuid',
        'recording_uuid',
        'card_uuid',
        'cvv_uuid',
      ])
        if (field in one && one[field] === two[field]) wrong.push(`${name}: ${field} is the same in two samples`);
      expect([one.aud, one.app_uuid ?? app.appUuid, one.test]).toEqual([app.appUuid, app.appUuid, true]);
      for (const url of [one.pull_url, one.live_url]) {
        if (typeof url !== 'string' || url === '') continue;
        const { pathname, search } = new URL(url);
        expect(recordingUrls.verify(pathname, search, platform.now())?.recordingUuid).toBe(String(one.recording_uuid));
      }
    }
    expect(wrong).toEqual([]);
  });
});
