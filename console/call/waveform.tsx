/**
 * A recording under the time axis, as long as it is there: its waveform, what is masked in it, who speaks, a player.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import WaveSurfer from 'wavesurfer.js';
import { span as spanText } from '../platform/time.ts';
import { type Extent, GUTTER, useWidth } from './axis.tsx';
import { colour, useScheme } from './scheme.ts';
import type { Span, Take } from './spans.ts';

const HEIGHT = 64;
/** A longer recording is fetched only when it is asked for. */
const AUTOMATIC_MAX_SEC = 900;

export function Waveform({
  take,
  spans,
  extent,
}: {
  readonly take: Take;
  readonly spans: readonly Span[];
  readonly extent: Extent;
}) {
  const { element, width } = useWidth();
  const [isWanted, setWanted] = useState(take.durationSec <= AUTOMATIC_MAX_SEC);
  const box = useRef<HTMLDivElement>(null);
  const player = usePlayer(box, take, isWanted);
  const endsAt = take.from + take.durationSec * 1000;
  const shades = spans.filter(
    ({ what, recordingUuid, from, until }) =>
      (what === 'masked' || what === 'speech') &&
      (recordingUuid === '' || recordingUuid === take.recordingUuid) &&
      until > take.from &&
      from < endsAt,
  );
  const track = Math.max(0, width - GUTTER - 6);
  const scale = track / (extent[1] - extent[0]);
  const share = (at: number) => `${(100 * Math.max(0, Math.min(at, endsAt) - take.from)) / (endsAt - take.from)}%`;
  return (
    <div ref={element} class="recording">
      <div class="strip">
        <div class="lane-label media">Recording</div>
        <div class="track" style={{ height: `${HEIGHT}px` }}>
          <div class="wave" style={{ left: `${(take.from - extent[0]) * scale}px`, width: `${(endsAt - take.from) * scale}px` }}>
            <div ref={box} />
            {shades.map(({ what, from, until }) => (
              <div
                key={`${what} ${from}`}
                class={`shade ${what}`}
                style={{ left: share(from), width: `calc(${share(until)} - ${share(from)})` }}
              />
            ))}
          </div>
        </div>
      </div>
      <p class="row small" style={{ paddingLeft: `${GUTTER}px` }}>
        {isWanted ? (
          <button type="button" disabled={player.state !== 'ready'} onClick={player.toggle}>
            {player.isPlaying ? 'Pause' : 'Play'}
          </button>
        ) : (
          <button type="button" onClick={() => setWanted(true)}>
            Load the recording
          </button>
        )}
        <span role="status">{WORDS[player.state]}</span>
        <span class="quiet" data-position={player.positionSec.toFixed(2)}>
          {spanText(player.positionSec)} / {spanText(take.durationSec)}
        </span>
        <a href={take.url} download={`${take.recordingUuid}.wav`}>
          Download
        </a>
        {shades.some(({ what }) => what === 'masked') && (
          <span class="legend">
            <i style={{ background: 'var(--mask)' }} /> masked
          </span>
        )}
        {shades.some(({ what }) => what === 'speech') && (
          <span class="legend">
            <i style={{ background: 'var(--speech)' }} /> speech
          </span>
        )}
      </p>
    </div>
  );
}

const WORDS = { loading: '', ready: '', gone: 'The recording is not there any more, or its link has expired.' } as const;

function usePlayer(box: { readonly current: HTMLDivElement | null }, take: Take, isWanted: boolean) {
  const [state, setState] = useState<keyof typeof WORDS>('loading');
  const [isPlaying, setPlaying] = useState(false);
  const [positionSec, setPosition] = useState(0);
  const wave = useRef<WaveSurfer>(undefined);
  const scheme = useScheme();
  useEffect(() => {
    const { current } = box;
    if (current === null || !isWanted) return;
    const made = WaveSurfer.create({
      container: current,
      url: take.url,
      height: HEIGHT,
      waveColor: colour(current, 'quiet'),
      progressColor: colour(current, 'accent'),
      cursorColor: colour(current, 'ink'),
      hideScrollbar: true,
      normalize: true,
    });
    wave.current = made;
    made.on('ready', () => setState('ready'));
    made.on('error', () => setState('gone'));
    made.on('play', () => setPlaying(true));
    made.on('pause', () => setPlaying(false));
    made.on('timeupdate', setPosition);
    return () => made.destroy();
  }, [take.url, isWanted, scheme]);
  return { state, isPlaying, positionSec, toggle: () => void wave.current?.playPause() };
}
