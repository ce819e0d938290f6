/** The bugs that `npm run simulate -- --planted` plants, each in a copy of the tree of its own. */

export interface PlantedBug {
  readonly name: string;
  readonly file: string;
  /** Text that is in the file once, and what it becomes. */
  readonly from: string;
  readonly to: string;
}

const CALL: readonly PlantedBug[] = [
  {
    name: 'a command that was refused is believed not to be stored',
    file: 'src/call/mailbox.ts',
    from: 'const committed = stored === undefined ? await this.#settle(change, envelope) :',
    to: "if (stored === undefined) refuse(envelope, this.#unable());\n    const committed = stored === undefined ? 'refused' :",
  },
  {
    name: 'a command is answered before it is durable',
    file: 'src/call/session/session-actor.ts',
    from: "    const outcome = change === undefined ? 'stored'",
    to: "    if (envelope.answer !== undefined) envelope.reply?.(envelope.answer);\n    const outcome = change === undefined ? 'stored'",
  },
  {
    name: 'a signal that cannot be stored is forgotten',
    file: 'src/call/mailbox.ts',
    from: 'return !isCommand;',
    to: 'return false;',
  },
  {
    name: 'a bot that joins a Room keeps a deadline that is always due',
    file: 'src/machine/session/seat.ts',
    from: 'deadlines: answered.length === 0 ? state.deadlines : {',
    to: 'deadlines: {',
  },
  {
    name: 'a far end that confirms no end is waited for without limit',
    file: 'src/machine/session/end.ts',
    from: 'deadlines: { teardown: now + TEARDOWN_MS }',
    to: 'deadlines: {}',
  },
  {
    name: 'the end of a call does not end its playback',
    file: 'src/machine/session/end.ts',
    from: "...(playback === undefined ? [] : [playbackEnded(sessionUuid, playback, 'stopped')]),",
    to: '',
  },
  {
    name: 'the end of a call does not leave its Room',
    file: 'src/machine/session/end.ts',
    from: "...leave(sessionUuid, membership, 'hangup').events,",
    to: '',
  },
  {
    name: 'a Room takes one member too many',
    file: 'src/call/room/room-actor.ts',
    from: 'this.#members.size < most',
    to: 'this.#members.size <= most',
  },
  {
    name: 'an application makes one Room too many',
    file: 'src/call/room/room-registry.ts',
    from: '(this.#counts.get(appUuid) ?? 0) >= cap',
    to: '(this.#counts.get(appUuid) ?? 0) > cap',
  },
  {
    name: 'the sources of a refused playback are not given back',
    file: 'src/call/mailbox.ts',
    from: '  reply?.(why);\n  playlist?.release();',
    to: '  reply?.(why);',
  },
];

const CRASH: readonly PlantedBug[] = [
  {
    name: 'a playback is not stored with the command that begins it',
    file: 'src/machine/session/operation/running.ts',
    from: '...(playback === undefined\n      ? {}',
    to: '...(playback === undefined || playback.kind !== undefined\n      ? {}',
  },
  {
    name: 'a collection of digits is not stored with the command that begins it',
    file: 'src/machine/session/operation/running.ts',
    from: '...(collect === undefined ? {} : { collect: collect.operationUuid }),',
    to: '',
  },
  {
    name: 'that a member talks is not stored',
    file: 'src/machine/session/operation/running.ts',
    from: '...(membership?.talking === true && membership.voiceActivityEvents ? { talking: true } : {}),',
    to: '',
  },
  {
    name: 'the Rooms of a lost process are not taken over',
    file: 'src/compose/heart.ts',
    from: 'await rooms.recover(() => sessions.recover())',
    to: 'await sessions.recover()',
  },
  {
    name: 'the recordings of a lost process are not ended',
    file: 'src/call/recording/ownerless-recordings.ts',
    from: 'await this.#each(left, async (row) => this.#endLeft(row, await mended(row)));',
    to: '',
  },
  {
    name: 'a charge of a lost process is never told of',
    file: 'src/call/charge/charge-dispatcher.ts',
    from: 'if (this.#inFlight.has(charge.chargeUuid)) continue;',
    to: 'if (charge.chargeUuid !== undefined) continue;',
  },
];

const WEBHOOK: readonly PlantedBug[] = [
  {
    name: 'a failed webhook lets the next of its lane pass',
    file: 'src/webhook/lanes.ts',
    from: '    entry.dueAt = dueAt;\n    this.#rest(entry);\n    this.#list(job.appUuid, app);',
    to: '    entry.dueAt = dueAt;\n    app.inFlight += 1;\n    this.done(job, false);\n    this.add(job, dueAt);',
  },
  {
    name: 'the reader of the outbox steps over late committers',
    file: 'src/webhook/intake.ts',
    from: '    this.#cursor = event;',
    to: '    this.#cursor = { xid: String(Number(event.xid) + 2), eventId: event.eventId };',
  },
  {
    name: 'outcomes of deliveries are thrown away while the database is away',
    file: 'src/webhook/outcome-writer.ts',
    from: '        this.#triesLeft -= 1;',
    to: '        this.#triesLeft -= 1;\n        this.#waiting = this.#waiting.slice(batch.length);',
  },
  {
    name: 'the relay spins while its lease has run out',
    file: 'src/webhook/relay-leadership.ts',
    from: 'if (isDry) this.#setTimer();',
    to: 'this.#setTimer();',
  },
];

const ORDERS: readonly PlantedBug[] = [
  {
    name: 'an Idempotency-Key that is in flight lets a second request in',
    file: 'src/database/idempotency/idempotency.ts',
    from: 'if (row.fresh === true) return',
    to: 'if (row.fresh === true || row.status === null) return',
  },
  {
    name: 'an Idempotency-Key that is in flight in memory lets a second request in',
    file: 'src/database/idempotency/key-marks.ts',
    from: "return 'in_flight';",
    to: '{}',
  },
  {
    name: 'a message whose outcome is not known is sent again',
    file: 'src/machine/message/message.ts',
    from: "if (bad?.outcome === 'unknown') return interrupted(known, now);",
    to: '',
  },
];

const ROOMS: readonly PlantedBug[] = [
  {
    name: 'a pipe to the home of a Room is not given back',
    file: 'src/call/room/pipe.ts',
    from: '    release(this.#media, this.#local);\n',
    to: '',
  },
  {
    name: 'a member of another node is not muted in the mix',
    file: 'src/call/room/guests.ts',
    from: '      guest.media?.setMuted(note.muted);\n',
    to: '',
  },
  {
    name: 'a member does not join the mix of its Room that has come to its node',
    file: 'src/call/room/takeovers.ts',
    from: "    session?.signal({ type: 'room_moved', roomId, room: room.media.number });\n    this.#options.drop(pipe);",
    to: '    this.#options.drop(pipe);',
  },
];

export const PLANTED_BUGS: readonly PlantedBug[] = [...CALL, ...CRASH, ...WEBHOOK, ...ORDERS, ...ROOMS];
