/** One end of a pipe between two simulated nodes: it is heard for as long as the other end is there. */
import { type LegCounters, type MediaPipe, NO_COUNTERS, type PipeEnd, type PipeOptions } from '../../src/media/engine.ts';
import { LegSound, type SoundWorld } from './sound.ts';

const SILENT_MS = 300;
const PACKET_MS = 20;

/** The ends of all nodes, by port. */
export type Pipes = Map<number, SimulatedPipe>;

export class SimulatedPipe extends LegSound implements MediaPipe {
  readonly end: PipeEnd;
  readonly #pipes: Pipes;
  readonly #options: PipeOptions;
  #other: PipeEnd | undefined;
  #received = 0;
  #isSilent = false;

  constructor(world: SoundWorld, worker: number, pipes: Pipes, options: PipeOptions) {
    super(world, worker, options.notify);
    const port = pipes.size + 1;
    this.end = { host: options.host, port, ssrc: port };
    this.#pipes = pipes;
    this.#options = options;
    pipes.set(port, this);
  }

  connect(other: PipeEnd): void {
    this.#other = other;
    this.#listen();
  }

  /** The end that it is connected to. */
  get other(): PipeEnd | undefined {
    return this.#other;
  }

  get isSending(): boolean {
    return !this.isOver && this.world.isRunning() && this.#other !== undefined;
  }

  #listen(): void {
    this.later(SILENT_MS, () => {
      if (this.isOver || this.#other === undefined) return;
      const isHeard = this.#pipes.get(this.#other.port)?.isSending === true;
      if (isHeard) this.#received += SILENT_MS / PACKET_MS;
      else if (!this.#isSilent) this.#options.onSilent();
      this.#isSilent = !isHeard;
      this.#listen();
    });
  }

  async counters(): Promise<LegCounters> {
    return { ...NO_COUNTERS, packetsReceived: this.#received };
  }

  override close(): Promise<LegCounters>;
  override async close(): Promise<LegCounters> {
    await super.close();
    return await this.counters();
  }
}
