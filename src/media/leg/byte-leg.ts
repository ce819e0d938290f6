/**
 * A leg whose audio is bytes in and out of this process: written to an inbox that the plane reads, and given in frames
 * of 20 ms.
 */
import { STREAM_BUFFER_MAX_SEC, STREAM_MARKS_MAX } from '../../limits.ts';
import type { PipeCodec } from '../audio.ts';
import { native } from '../native.ts';
import { NOTICE, type NoticeRecord } from '../worker/notice.ts';
import { pcmPipeCodec } from './pipe-codec.ts';
import { PlaneLeg, type PlaneLegOptions } from './plane-leg.ts';
import type { StreamFormat, StreamLeg, StreamLegOptions } from './stream.ts';

const bytesASecond = ({ encoding, rateHz }: StreamFormat) => rateHz * (encoding === 'mulaw' ? 1 : 2);

export class ByteLeg extends PlaneLeg implements StreamLeg {
  readonly #stream: StreamLegOptions;
  readonly #inbox: number;
  readonly #mostBytes: number;
  /** Bytes ever written; what the plane tells of is the same count, 32 bits of it. */
  #written = 0;
  #passed = 0;
  #refused = false;
  readonly #marks: { readonly name: string; readonly at: number }[] = [];

  constructor(options: PlaneLegOptions, stream: StreamLegOptions) {
    const inbox = native.inboxOpen();
    super({
      ...options,
      freed: (counters) => {
        native.inboxClose(inbox);
        options.freed(counters);
      },
    });
    this.#stream = stream;
    this.#inbox = inbox;
    this.#mostBytes = STREAM_BUFFER_MAX_SEC * bytesASecond(stream.toSession);
    const { toSession, fromSession } = stream;
    this.placement.command({ type: 'open stream', leg: options.id, inbox, toSession, fromSession });
  }

  protected override get rateHz(): number {
    return this.#stream.fromSession.rateHz;
  }

  /** The samples as they are, at the higher rate of the two directions. Mu-law loses nothing by a pipe of mu-law. */
  get pipeCodec(): PipeCodec {
    const { fromSession, toSession } = this.#stream;
    if (fromSession.encoding === 'mulaw' && toSession.encoding === 'mulaw') return 'PCMU';
    return pcmPipeCodec(Math.max(fromSession.rateHz, toSession.rateHz));
  }

  write(bytes: Uint8Array): boolean {
    if (this.over) return true; // nobody will hear it
    if (!native.inboxWrite(this.#inbox, bytes, this.#mostBytes)) {
      this.#refused = true;
      return false;
    }
    this.#written += bytes.length;
    return true;
  }

  clear(): void {
    native.inboxClear(this.#inbox);
    for (const { name } of this.#marks.splice(0)) this.#stream.onMark(name);
  }

  pause(on: boolean): void {
    native.inboxPause(this.#inbox, on);
  }

  mark(name: string): boolean {
    if (this.#marks.length >= STREAM_MARKS_MAX) return false;
    if (this.#written <= this.#passed + 1) this.#stream.onMark(name);
    else this.#marks.push({ name, at: this.#written });
    return true;
  }

  frame(passed: number, frame: Uint8Array): void {
    this.#passed += (passed - this.#passed) >>> 0;
    // The odd byte of a sample to come is nothing to be heard yet.
    while (this.#marks[0] !== undefined && this.#marks[0].at <= this.#passed + 1)
      this.#stream.onMark(this.#marks.shift()?.name ?? '');
    if (this.#refused && this.#written - this.#passed < this.#mostBytes) {
      this.#refused = false;
      this.#stream.onRoom();
    }
    if (!this.over) this.#stream.onFrame(frame);
  }

  override notice(record: NoticeRecord): void {
    if (record.kind === NOTICE.streamPlayed) this.#stream.onPlayed(record.a);
    else super.notice(record);
  }
}
