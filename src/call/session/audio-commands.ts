/**
 * Commands of a Session that need something before its actor is asked: sources that can be opened, a place for a
 * recording, a card that is known.
 */
import { type Clock, timestamp } from '../../clock.ts';
import { INGEST_START_MS } from '../../limits.ts';
import { CARD_BRANDS } from '../../machine/payment/card.ts';
import type { CallCommand } from '../../machine/session/input.ts';
import type { CollectPayment } from '../../machine/session/operation/payment.ts';
import type { MediaEngine } from '../../media/engine.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { type Answer, accepted, type CommandContext, type SessionCommand } from '../ports/sessions.ts';
import type { RecordingRegistry } from '../recording/recording-registry.ts';
import { Ingests, type OpenIngest } from './ingests.ts';
import type { PaymentRecords } from './payment-records.ts';
import type { SessionActor } from './session-actor.ts';

/** What they ask of a Session. */
type Commanded = Pick<SessionActor, 'state' | 'refusal' | 'command'>;

export interface AudioCommandOptions {
  readonly nodeId: string;
  readonly clock: Clock;
  readonly media: Pick<MediaEngine, 'openPlaylist' | 'openStream' | 'openPush'>;
  /** The origin of the URLs that are handed out. */
  readonly publicUrl: string;
  /** The records of secure collections, or undefined when payments are off. */
  readonly payments?: PaymentRecords | undefined;
  readonly recordings: RecordingRegistry;
}

export class AudioCommands {
  readonly #options: AudioCommandOptions;
  readonly #ingests = new Ingests();

  constructor(options: AudioCommandOptions) {
    this.#options = options;
  }

  /** The open ingest of an application by its name, or undefined. */
  ingest(appUuid: string, ingestUuid: string): OpenIngest | undefined {
    return this.#ingests.find(appUuid, ingestUuid);
  }

  async #record(
    actor: Commanded,
    command: Extract<SessionCommand, { type: 'record' }>,
    context: CommandContext,
  ): Promise<Answer | Problem> {
    const { recordingUuid } = command.terms;
    const answer = accepted(context.operationUuid, { recording_uuid: recordingUuid });
    return this.#options.recordings.admitting(context.appUuid, () => actor.command(command, context, undefined, answer));
  }

  /** Opens what the command plays, if it plays something; then asks the actor. */
  command(actor: Commanded, command: SessionCommand, context: CommandContext): Promise<Answer | Problem> {
    switch (command.type) {
      case 'record':
        return this.#record(actor, command, context);
      case 'collect_payment':
        return this.#collectPayment(actor, command, context);
      case 'play':
        return this.#withSources(actor, command, command.urls, context);
      case 'play_stream':
        return this.#withStream(actor, command, context);
      case 'play_push':
        return this.#withIngest(actor, command, context);
      case 'collect':
        if (command.promptUrls.length > 0) return this.#withSources(actor, command, command.promptUrls, context);
    }
    return actor.command(command, context);
  }

  /**
   * Begins a secure collection. It needs a known card, and prompts that can be played, those of a second attempt too.
   */
  async #collectPayment(actor: Commanded, command: CollectPayment, context: CommandContext): Promise<Answer | Problem> {
    const { payments, media } = this.#options;
    if (payments === undefined) return problems.notConfigured('Payment');
    const refused = actor.refusal(command.type);
    if (refused !== undefined) return refused;
    const { terms, promptUrls, cardUuid } = command;
    const brand =
      cardUuid === undefined ? undefined : await payments.cardBrand(context.appUuid, actor.state.sessionUuid, cardUuid);
    if (cardUuid !== undefined && brand === undefined) return problems.notFound('Payment reference');
    const cardBrand = CARD_BRANDS.find((each) => each === brand);
    // The prompts of later attempts are counted after those of the first.
    const hasOthers = terms.retryUrls.length > 0 && terms.retryUrls !== promptUrls;
    const sources = promptUrls.length + (hasOthers ? terms.retryUrls.length : 0);
    if (terms.maxAttempts > 1 && hasOthers) {
      const again = await media.openPlaylist(terms.retryUrls, context.appUuid);
      if ('refused' in again) {
        const { source_index: place = 0 } = again.refused;
        return problems.source({ ...again.refused, source_index: promptUrls.length + place }, sources);
      }
      again.release();
    }
    const known: CollectPayment = { ...command, terms: { ...terms, cardBrand } };
    return promptUrls.length > 0 ? this.#withSources(actor, known, promptUrls, context, sources) : actor.command(known, context);
  }

  /** Opens every source before the command is admitted; one that cannot be opened is the 502 of the interface. */
  async #withSources(
    actor: Commanded,
    command: CallCommand,
    urls: readonly string[],
    context: CommandContext,
    sources = urls.length,
  ): Promise<Answer | Problem> {
    const refused = actor.refusal(command.type);
    if (refused !== undefined) return refused;
    const playlist = await this.#options.media.openPlaylist(urls, context.appUuid);
    if ('refused' in playlist) return problems.source({ source_index: 0, ...playlist.refused }, sources);
    return actor.command(command, context, playlist);
  }

  /** Opens the one source of a stream before the command is admitted. */
  async #withStream(
    actor: Commanded,
    command: Extract<CallCommand, { type: 'play_stream' }>,
    context: CommandContext,
  ): Promise<Answer | Problem> {
    const refused = actor.refusal(command.type);
    if (refused !== undefined) return refused;
    const stream = await this.#options.media.openStream(command.url, context.appUuid);
    return 'refused' in stream ? problems.source(stream.refused, 1) : actor.command(command, context, stream);
  }

  /** The audio comes later, through the URL that the answer names. */
  async #withIngest(
    actor: Commanded,
    command: Extract<CallCommand, { type: 'play_push' }>,
    context: CommandContext,
  ): Promise<Answer | Problem> {
    const refused = actor.refusal(command.type);
    if (refused !== undefined) return refused;
    const { clock, media, publicUrl } = this.#options;
    const { appUuid, operationUuid } = context;
    const expiresAt = clock.now() + INGEST_START_MS;
    const { playlist, ingest } = media.openPush(command.format);
    const name = this.#ingests.add({ appUuid, operationUuid, ingest, expiresAt }, this.#options.nodeId);
    const answer = accepted(operationUuid, {
      ingest: {
        url: `${publicUrl}/v1/ingest/${name}`,
        method: 'POST',
        headers: { 'content-type': 'application/octet-stream' },
        expires_at: timestamp(expiresAt),
      },
    });
    const result = await actor.command(command, context, playlist, answer);
    // A push that is stored all the same is answered with its URL when it is asked for again under its key.
    if (isProblem(result) && result.isInDoubt !== true) this.#ingests.forget(appUuid, name);
    return result;
  }
}
