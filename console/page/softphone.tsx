/** A phone in the page: calls an application by WebRTC, with the microphone of this machine. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type BrowserCall, connectBrowser } from '../../sdk/typescript/src/browser.ts';
import { CallLink, Problem } from '../part/parts.tsx';
import { ask } from '../platform/api.ts';
import { wordsOf } from '../platform/live.ts';
import { useQuestionOnLeaving } from '../platform/router.ts';
import type { AppDetail } from '../platform/types.ts';

const KEYS = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '*', '0', '#'] as const;

/** One call at a time to the application. It is hung up when the page is left. */
function useCall(app: AppDetail) {
  const [call, setCall] = useState<BrowserCall | undefined>();
  const [said, setSaid] = useState('');
  const [error, setError] = useState('');
  const current = useRef<BrowserCall | undefined>(undefined);
  /** A call is being made or is up: a second click makes no second one. */
  const isCalling = useRef(false);
  const hasLeft = useRef(false);
  // Who leaves the page hangs up.
  useEffect(
    () => () => {
      hasLeft.current = true;
      void current.current?.hangUp();
    },
    [],
  );

  const start = async (event: SubmitEvent) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement) || isCalling.current) return;
    isCalling.current = true;
    const to = String(new FormData(event.currentTarget).get('to') ?? '');
    setError('');
    setSaid('Calling …');
    try {
      const body = to === '' ? {} : { to };
      const { token } = await ask<{ token: string }>('POST', `/apps/${app.app_uuid}/webrtc-tokens`, body);
      const made = await connectBrowser({ url: `${location.origin}/v1/whip`, token });
      current.current = made;
      if (hasLeft.current) void made.hangUp();
      setCall(made);
      setSaid('Ringing until the application answers.');
      await made.ended;
      setSaid('The call is over.');
    } catch (problem) {
      setSaid('');
      setError(wordsOf(problem));
    }
    current.current = undefined;
    isCalling.current = false;
    setCall(undefined);
  };

  return { call, said, error, start };
}

/** The page's phone: a form to call with, and the call that is up. */
export function Softphone({ app }: { readonly app: AppDetail }) {
  const { call, said, error, start } = useCall(app);
  useQuestionOnLeaving(call === undefined ? undefined : 'Leaving this page hangs up the call. Leave it?');
  return (
    <>
      <form class="form" onSubmit={start}>
        <label>
          The number that is called (did)
          <input
            name="to"
            pattern="\+[1-9][0-9]{1,14}"
            placeholder="+15550001"
            defaultValue={app.inbound_phone_numbers[0] ?? ''}
          />
        </label>
        <p class="row">
          <button class="primary" type="submit" disabled={call !== undefined}>
            Call from here
          </button>
          {call !== undefined && (
            <button type="button" class="danger" onClick={() => void call.hangUp()}>
              Hang up
            </button>
          )}
        </p>
      </form>
      {call !== undefined && <Live key={call.sessionUuid} call={call} />}
      <Problem words={error} />
      <p class="small" role="status">
        {said}
      </p>
      {!isSecureContext && (
        <p class="error small">A browser gives no microphone to a page that is neither https nor localhost.</p>
      )}
    </>
  );
}

/** The call that is up: its sound, its keys, and what is done with it. */
function Live({ call }: { readonly call: BrowserCall }) {
  const speaker = useRef<HTMLAudioElement>(null);
  const [muted, setMuted] = useState(false);
  const [held, setHeld] = useState(false);
  const [error, setError] = useState('');
  useEffect(() => {
    if (speaker.current !== null) speaker.current.srcObject = call.audio;
  }, [call]);
  const hold = async () => {
    try {
      await call.hold(!held);
      setHeld(!held);
      setError('');
    } catch (problem) {
      setError(wordsOf(problem));
    }
  };
  return (
    <div class="notice">
      {/* biome-ignore lint/a11y/useMediaCaption: it is a live call. */}
      <audio ref={speaker} autoplay />
      <p>
        Call <CallLink uuid={call.sessionUuid} apart /> <span class="quiet small">in a new tab</span>
      </p>
      <fieldset class="row" aria-label="Keys">
        {KEYS.map((key) => (
          <button key={key} type="button" onClick={() => call.sendDigits(key)}>
            {key}
          </button>
        ))}
      </fieldset>
      <p class="row">
        <button
          type="button"
          aria-pressed={muted}
          onClick={() => {
            call.mute(!muted);
            setMuted(!muted);
          }}
        >
          Mute
        </button>
        <button type="button" aria-pressed={held} onClick={() => void hold()}>
          Hold
        </button>
      </p>
      <Problem words={error} />
    </div>
  );
}
