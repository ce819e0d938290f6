/**
 * A recording under the time axis, piece by piece where it was recorded: its waveform, what is masked, who speaks, a
 * player.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import WaveSurfer from 'wavesurfer.js';
import { span as spanText } from '../platform/time.ts';
import { type Extent, GUTTER, MARGIN, useWidth } from './axis.tsx';
import { colour, useScheme } from './scheme.ts';
import type { Span } from './spans.ts';
import { type Piece, placeOf, type Take } from './takes.ts';

const HEIGHT = 64;
/** A longer recording is fetched only when it is asked for. */
const AUTOMATIC_MAX_MS = 900_000;

interface WaveformProps {
  readonly take: Take;
  readonly spans: readonly Span[];
  readonly extent: Extent;
}

export function Waveform({ take, spans, extent: [from, until] }: WaveformProps) {
  const { element, width } = useWidth();
  /** How often the file was asked for. */
  const [asked, setAsked] = useState(take.durationMs <= AUTOMATIC_MAX_MS ? 1 : 0);
  const box = useRef<HTMLDivElement>(null);
  const player = usePlayer(box, take.url, asked);
  const shades = spans.filter(
    ({ what, recordingUuid, from: begins, until: ends }) =>
      (what === 'masked' || what === 'speech') && recordingUuid === take.recordingUuid && ends > take.from && begins < take.until,
  );
  const scale = Math.max(0, width - GUTTER - MARGIN) / (until - from);
  const place = (begins: number, ends: number) => ({
    left: `${(begins - from) * scale}px`,
    width: `${(ends - begins) * scale}px`,
  });
  return (
    <div ref={element} class="recording">
      <div ref={box} hidden />
      <div class="strip">
        <div class="lane-label media">Recording</div>
        <div class="track" style={{ height: `${HEIGHT}px`, marginRight: `${MARGIN}px` }}>
          {visiblePieces(take.pieces, from, until).map((piece) => (
            <Wave
              key={`${piece.from} ${piece.until}`}
              piece={piece}
              sound={player.sound}
              place={place(piece.from, piece.until)}
              positionMs={player.positionSec * 1000}
              onSeek={player.seek}
            />
          ))}
          {shades.map(({ what, from: begins, until: ends }) => (
            <div
              key={`${what} ${begins}`}
              class={`shade ${what}`}
              style={place(Math.max(begins, take.from), Math.min(ends, take.until))}
            />
          ))}
          {player.state === 'ready' && (
            <div class="cursor" style={{ left: `${(placeOf(take.pieces, player.positionSec * 1000) - from) * scale}px` }} />
          )}
        </div>
      </div>
      <p class="row small" style={{ paddingLeft: `${GUTTER}px` }}>
        {asked === 0 || player.state === 'failed' ? (
          <button type="button" onClick={() => setAsked(asked + 1)}>
            Load the recording
          </button>
        ) : (
          <button type="button" disabled={player.state !== 'ready'} onClick={player.toggle}>
            {player.isPlaying ? 'Pause' : 'Play'}
          </button>
        )}
        {player.state === 'ready' && <Position take={take} player={player} />}
        <Told take={take} player={player} shades={shades} />
      </p>
    </div>
  );
}

/**
 * The place that is played, which the arrow keys move by a second, or by a tenth in a short recording. A waveform is
 * clicked by a pointer alone.
 */
const Position = ({ take, player }: { readonly take: Take; readonly player: Pick<Player, 'positionSec' | 'seek'> }) => (
  <input
    type="range"
    class="position"
    aria-label="Position in the recording"
    aria-valuetext={`${spanText(player.positionSec)} of ${spanText(take.durationMs / 1000)}`}
    min={0}
    max={take.durationMs / 1000}
    step={take.durationMs < 20_000 ? 0.1 : 1}
    value={player.positionSec}
    onInput={({ currentTarget }) => player.seek(Number(currentTarget.value))}
  />
);

/** Cuts the pieces to what is shown, so that a part of a long recording is drawn as large as any other. */
const visiblePieces = (pieces: readonly Piece[], from: number, until: number): readonly Piece[] =>
  pieces
    .map((piece) => {
      const begins = Math.max(piece.from, from);
      return { from: begins, until: Math.min(piece.until, until), offsetMs: piece.offsetMs + begins - piece.from };
    })
    .filter((piece) => piece.until > piece.from);

/** What stands under the waveform: how far it is played, where it can be had, and what its colours are. */
function Told(props: {
  readonly take: Take;
  readonly player: Pick<Player, 'state' | 'positionSec'>;
  readonly shades: readonly Span[];
}) {
  const { take, player, shades } = props;
  return (
    <>
      <span role="status">{WORDS[player.state]}</span>
      <span class="quiet" data-position={player.positionSec.toFixed(2)}>
        {spanText(player.positionSec)} / {spanText(take.durationMs / 1000)}
      </span>
      <a href={take.url} download={`${take.recordingUuid}.wav`}>
        Download
      </a>
      {(['masked', 'speech'] as const)
        .filter((each) => shades.some(({ what }) => what === each))
        .map((each) => (
          <span key={each} class="legend">
            <i class={`shade ${each}`} /> {each}
          </span>
        ))}
      {take.missingMs > 0 && (
        <span class="quiet">
          {(take.missingMs / 1000).toFixed(1)} s were interrupted and are not in the file. Nothing says when, so the waveform may
          lie too early.
        </span>
      )}
    </>
  );
}

/** A piece of the waveform. What of it was played is in another colour, and a click plays from there. */
function Wave(props: {
  readonly piece: Piece;
  readonly sound: Sound | undefined;
  readonly place: { readonly left: string; readonly width: string };
  readonly positionMs: number;
  onSeek(positionSec: number): void;
}) {
  const { piece, sound, positionMs } = props;
  const { offsetMs } = piece;
  const lengthMs = piece.until - piece.from;
  const box = useRef<HTMLDivElement>(null);
  const drawn = useRef<WaveSurfer>(undefined);
  const scheme = useScheme();
  useEffect(() => {
    const { current } = box;
    if (current === null || sound === undefined) return;
    const at = (ms: number) => Math.round((ms * sound.samples.length) / sound.durationMs);
    const made = WaveSurfer.create({
      container: current,
      cspNonce: styleNonce(),
      peaks: [sound.samples.subarray(at(offsetMs), at(offsetMs + lengthMs))],
      duration: lengthMs / 1000,
      height: HEIGHT,
      waveColor: colour(current, 'quiet'),
      progressColor: colour(current, 'accent'),
      cursorWidth: 0,
      hideScrollbar: true,
      normalize: true,
      maxPeak: sound.loudest,
    });
    made.on('interaction', (sec) => props.onSeek(offsetMs / 1000 + sec));
    drawn.current = made;
    return () => made.destroy();
  }, [sound, offsetMs, lengthMs, scheme]);
  useEffect(() => {
    drawn.current?.setTime(Math.min(lengthMs, Math.max(0, positionMs - offsetMs)) / 1000);
  }, [positionMs, sound, offsetMs, lengthMs, scheme]);
  return <div class="wave" ref={box} style={props.place} />;
}

const WORDS = {
  loading: '',
  ready: '',
  gone: 'The recording is not there any more, or its link has expired.',
  failed: 'The recording could not be loaded.',
} as const;

/** What an error of the player says: the refusals of a signed URL are for good, and whatever else may pass. */
const stateAfter = ({ message }: Error): 'gone' | 'failed' => (/: (403|404|410) \(/.test(message) ? 'gone' : 'failed');

/** The nonce that the platform gave the page for the `<style>` of a waveform. */
const styleNonce = (): string => document.querySelector<HTMLMetaElement>('meta[name=style-nonce]')?.content ?? '';

/** The sound of a file, as a waveform is drawn from it. */
interface Sound {
  readonly samples: Float32Array;
  readonly durationMs: number;
  readonly loudest: number;
}

interface Player {
  readonly state: keyof typeof WORDS;
  readonly isPlaying: boolean;
  readonly positionSec: number;
  /** The sound, or undefined until the file is there. */
  readonly sound: Sound | undefined;
  toggle(): void;
  seek(positionSec: number): void;
}

/**
 * Fetches a file, once `asked` is more than 0 and anew each time it changes, and plays it. What is drawn in `box` is
 * never seen: the pieces are drawn by themselves.
 */
function usePlayer(box: { readonly current: HTMLDivElement | null }, url: string, asked: number): Player {
  const [state, setState] = useState<Player['state']>('loading');
  const [isPlaying, setPlaying] = useState(false);
  const [positionSec, setPosition] = useState(0);
  const [sound, setSound] = useState<Sound>();
  const wave = useRef<WaveSurfer>(undefined);
  // The place that was asked for last, until the file is there: Chromium forgets one that is asked for during a seek.
  const wanted = useRef<number>(undefined);
  useEffect(() => {
    const { current } = box;
    if (current === null || asked === 0) return;
    setState('loading');
    const made = WaveSurfer.create({ container: current, cspNonce: styleNonce(), url, height: 1 });
    const seeked = () => {
      const last = wanted.current;
      wanted.current = undefined;
      if (last !== undefined && last !== made.getCurrentTime()) made.setTime(last);
    };
    wanted.current = undefined;
    wave.current = made;
    made.on('ready', () => {
      const samples = made.getDecodedData()?.getChannelData(0);
      if (samples !== undefined) setSound({ samples, durationMs: made.getDuration() * 1000, loudest: loudestOf(samples) });
      setState('ready');
    });
    made.on('error', (error) => setState(stateAfter(error)));
    made.on('play', () => setPlaying(true));
    made.on('pause', () => setPlaying(false));
    made.on('timeupdate', (sec) => setPosition(wanted.current ?? sec));
    const media = made.getMediaElement();
    media?.addEventListener('seeked', seeked);
    return () => {
      media?.removeEventListener('seeked', seeked);
      made.destroy();
    };
  }, [url, asked]);
  return useMemo(
    () => ({
      state,
      isPlaying,
      positionSec,
      sound,
      toggle: () => void wave.current?.playPause(),
      seek: (sec) => {
        if (wave.current?.getMediaElement()?.seeking) wanted.current = sec;
        else wave.current?.setTime(sec);
        setPosition(sec);
      },
    }),
    [state, isPlaying, positionSec, sound],
  );
}

const loudestOf = (samples: Float32Array): number => samples.reduce((most, each) => Math.max(most, Math.abs(each)), 0.001);
