/** The application's commands as HTTP requests, and what each must lead to once it is admitted. */
import type { Admitted } from './books.ts';
import type { CallCommand, RoomCommand } from './plan.ts';
import { CALLER_ID, TERMINAL } from './settings.ts';

export interface Command {
  readonly method: 'POST' | 'DELETE' | 'GET';
  readonly path: string;
  readonly body?: object;
  /** What must follow, given the answer's body. */
  readonly follows?: (answer: Readonly<Record<string, unknown>>) => readonly Admitted[];
}

type Answer = Readonly<Record<string, unknown>>;

const operation =
  (what: string, events: RegExp) =>
  (answer: Answer): readonly Admitted[] =>
    typeof answer.operation_uuid === 'string' && answer.already_ended !== true
      ? [{ what, field: 'operation_uuid', value: answer.operation_uuid, events }]
      : [];

const named =
  (what: string, field: Admitted['field'], events: RegExp, status?: RegExp) =>
  (answer: Answer): readonly Admitted[] => {
    const value = answer[field];
    return typeof value === 'string' ? [{ what, field, value, events, ...(status === undefined ? {} : { status }) }] : [];
  };

const session = named('the Session', 'session_uuid', /^session\.ended$/);
const AUDIO = ['http://audio.invalid/a.wav'];

/** What the application knows of a call and of the Rooms when it sends a command. */
export interface Known {
  readonly session: string;
  readonly room: string | undefined;
  readonly recording: string | undefined;
  readonly card: string | undefined;
  readonly cvv: string | undefined;
}

export const dial = (to: string, state: string, room: string | undefined, detects: boolean): Command => ({
  method: 'POST',
  path: '/v1/sessions:dial',
  body: {
    ...{ from: CALLER_ID, to, ring_timeout_sec: 10, max_duration_sec: 60, client_state: state },
    ...(room === undefined ? {} : { room_id: room }),
    ...(detects ? { machine_detection: {} } : { send_digits: '1' }),
  },
  follows: session,
});

export const connectBot = (url: string, state: string, room: string | undefined): Command => {
  const format = { encoding: 'pcm_s16le', sample_rate: 8000 };
  return {
    method: 'POST',
    path: '/v1/sessions:connectWebsocket',
    body: {
      websocket: { url },
      media_format: { from_session: format, to_session: format },
      client_state: state,
      ...(room === undefined ? {} : { room_id: room }),
    },
    follows: session,
  };
};

export const sendMessage = (): Command => ({
  method: 'POST',
  path: '/v1/messages',
  body: { from: CALLER_ID, to: '+15550099', text: 'simulated '.repeat(20) },
  follows: named('the message', 'message_uuid', /^message\.status_changed$/, /^(delivered|undelivered|failed)$/),
});

/** A command about a call. Undefined: it needs something that the application does not have. */
export function callCommand(name: CallCommand, { session: uuid, room, recording, card, cvv }: Known): Command | undefined {
  const at = `/v1/sessions/${uuid}`;
  const post = (path: string, body?: object, follows?: Command['follows']): Command => ({
    method: 'POST',
    path: `${at}${path}`,
    ...(body === undefined ? {} : { body }),
    ...(follows === undefined ? {} : { follows }),
  });
  const playback = operation('the playback', /^playback\.(ended|failed)$/);
  switch (name) {
    case 'answer':
    case 'cancel':
    case 'hold':
    case 'unhold':
      return post(`/${name}`);
    case 'reject':
      return post('/reject', { reason: 'busy' });
    case 'hangup':
      return { method: 'DELETE', path: at };
    case 'inspect':
      return { method: 'GET', path: at };
    case 'play':
      return post('/playback/play', { type: 'files', urls: AUDIO }, playback);
    case 'play_silence':
      return post('/playback/play', { type: 'silence' }, playback);
    case 'stop_playback':
      return post('/playback/stop');
    case 'pause':
    case 'resume':
      return post(`/playback/${name}`);
    case 'collect':
      return post('/dtmf/collect', { prompt_files: AUDIO, max_digits: 4 }, operation('the collection', /^digits\.collected$/));
    case 'cancel_collect':
      return { method: 'DELETE', path: `${at}/dtmf/collect` };
    case 'send_digits':
      return post('/dtmf/send', { digits: '12' }, operation('the digits', /^dtmf\.sent$/));
    case 'record':
      return post(
        '/recordings',
        { direction: 'both', channels: 'mono' },
        named('the recording', 'recording_uuid', /^recording\.ended$/),
      );
    case 'stop_recording':
      return recording === undefined ? undefined : post(`/recordings/${recording}/stop`);
    case 'mask':
      return recording === undefined ? undefined : post(`/recordings/${recording}/mask`);
    case 'transfer':
      return post('/transfer', { to: '+15550077' }, operation('the transfer', /^session\.transfer\.(completed|failed)$/));
    default:
      return memberCommand(name, post, uuid, room) ?? paymentCommand(name, post, card, cvv);
  }
}

type Post = (path: string, body?: object, follows?: Command['follows']) => Command;

function memberCommand(name: CallCommand, post: Post, session_uuid: string, room: string | undefined): Command | undefined {
  const members = `/api/v1/rooms/${room}/members`;
  switch (name) {
    case 'join':
      return room === undefined ? undefined : { method: 'POST', path: members, body: { session_uuid } };
    case 'leave':
      return room === undefined ? undefined : { method: 'DELETE', path: `${members}/${session_uuid}` };
    case 'mute':
    case 'unmute':
      return post(`/room/${name}`);
    case 'member_volume':
      return post(
        '/room/volume',
        { volume: 50, direction: 'both' },
        operation('the volume', /^room\.member\.volume_change(d|_failed)$/),
      );
    default:
      return undefined;
  }
}

function paymentCommand(name: CallCommand, post: Post, card?: string, cvv?: string): Command | undefined {
  switch (name) {
    case 'collect_card':
      return post('/payment/card/collect', { max_attempts: 1 }, operation('the card', /^payment\.card\.collected$/));
    case 'collect_cvv':
      return post('/payment/cvv/collect', { max_attempts: 2 }, operation('the CVV', /^payment\.cvv\.collected$/));
    case 'charge':
      return card === undefined || cvv === undefined
        ? undefined
        : post(
            '/payment/charges',
            {
              ...{ card_uuid: card, cvv_uuid: cvv, exp_month: 1, exp_year: 2030, amount: 100, currency: 'ils' },
              ...{ provider: 'sandbox', terminal_number: TERMINAL },
            },
            operation('the charge', /^payment\.charge\.completed$/),
          );
    default:
      return undefined;
  }
}

export function roomCommand(name: RoomCommand, room: string | undefined): Command | undefined {
  if (name === 'create_room')
    return {
      method: 'POST',
      path: '/api/v1/rooms',
      body: { voice_activity_events: true },
      follows: (answer) => [
        ...named('the Room', 'room_id', /^room\.created$/)(answer),
        // At its end the application deletes every Room that it knows.
        ...named('the Room', 'room_id', /^room\.deleted$/)(answer),
      ],
    };
  if (name === 'list_rooms') return { method: 'GET', path: '/api/v1/rooms' };
  if (room === undefined) return undefined;
  const at = `/api/v1/rooms/${room}`;
  switch (name) {
    case 'room_play':
      return {
        method: 'POST',
        path: `${at}/playback/play`,
        body: { type: 'files', urls: AUDIO },
        follows: operation('the playback of the Room', /^room\.playback\.(ended|failed)$/),
      };
    case 'room_stop':
      return { method: 'POST', path: `${at}/playback/stop` };
    case 'room_volume':
      return { method: 'POST', path: `${at}/playback/volume`, body: { volume: 70 } };
    case 'room_record':
      return {
        method: 'POST',
        path: `${at}/playback/record`,
        body: {},
        follows: named('the recording of the Room', 'recording_uuid', /^recording\.ended$/),
      };
    case 'room_stop_record':
      return { method: 'POST', path: `${at}/playback/record/stop` };
    case 'list_members':
      return { method: 'GET', path: `${at}/members` };
    case 'delete_room':
      return { method: 'DELETE', path: at };
  }
}
