/**
 * The rows of the table of results: which bench makes each figure, how it is read from what the bench prints, and the
 * goal. Every figure stands beside its floor or peer of the same run where there is one.
 */

/** What a row found in the output of its bench. */
export interface Figure {
  /** The figure that is judged and plotted. */
  readonly value: number;
  /** What stood beside it in the same run, in words; empty where nothing did. */
  readonly beside: string;
}

export interface Row {
  /** The name of the plot's file and of the row in the history. */
  readonly id: string;
  readonly name: string;
  readonly unit: string;
  readonly goal: number;
  readonly better: 'less' | 'more';
  /** The bench and its arguments. Rows with the same ones share a run. */
  readonly bench: readonly string[];
  /** Reads the figure, or undefined when the bench did not get so far. */
  read(output: string): Figure | undefined;
}

/**
 * A row whose figure and companions are the groups of one pattern: the first is the figure, the others fill `beside`.
 */
function matched(pattern: RegExp, beside: (...found: string[]) => string = () => ''): Row['read'] {
  return (output) => {
    const [, value, ...others] = pattern.exec(output) ?? [];
    return value === undefined ? undefined : { value: Number(value), beside: beside(...others) };
  };
}

/** The ratio of two rates that `bench api` prints, the own one first. */
function timesDrizzle(own: string, usual: string): Row['read'] {
  const rate = (output: string, name: string) => Number(new RegExp(`^${name} +(\\d+)/s`, 'm').exec(output)?.[1] ?? Number.NaN);
  return (output) => {
    const [ours, theirs] = [rate(output, own), rate(output, usual)];
    if (Number.isNaN(ours) || Number.isNaN(theirs)) return undefined;
    return { value: ours / theirs, beside: `${ours}/s beside ${theirs}/s` };
  };
}

/** CPU of the platform and of PostgreSQL for a call, in ms, of the last round: those before it warm the compilers. */
function callCost(output: string): Figure | undefined {
  const platform = [...output.matchAll(/CPU ([\d.]+) ms a call/g)].at(-1)?.[1];
  const database = [...output.matchAll(/PostgreSQL: ([\d.]+) ms of CPU a call/g)].at(-1)?.[1];
  if (platform === undefined || database === undefined) return undefined;
  const failed = output.includes('SAW FAILURES') ? '; SIPp saw failures' : '';
  return { value: Number(platform) + Number(database), beside: `platform ${platform}, PostgreSQL ${database}${failed}` };
}

/** The most that any flood made slower, in ms at p99, of the API (0) or of SIP (1). */
function worstFlood(probe: 0 | 1): Row['read'] {
  return (output) => {
    const added = [...output.matchAll(/^(\S+): quiet ([\d. ]+) late .*flooded ([\d. ]+) late/gm)].map(
      ([, flood = '', quiet = '', flooded = '']) => ({
        flood,
        ms: Number(flooded.split(' ')[probe]) - Number(quiet.split(' ')[probe]),
      }),
    );
    const worst = added.toSorted((a, b) => b.ms - a.ms)[0];
    return worst === undefined ? undefined : { value: worst.ms, beside: `under ${worst.flood}` };
  };
}

/** What another node adds to a refused command, in ms, at p50 (0) or p99 (1). */
function throughAnother(quantile: 0 | 1): Row['read'] {
  const took = (output: string, line: string) =>
    Number(new RegExp(`^${line} +p50 ([\\d.]+) ms +p99 ([\\d.]+) ms`, 'm').exec(output)?.[1 + quantile] ?? Number.NaN);
  return (output) => {
    const [another, direct] = [
      took(output, 'refused by the machine, through another node'),
      took(output, 'refused by the machine, through its node'),
    ];
    return Number.isNaN(another - direct) ? undefined : { value: another - direct, beside: `${another} ms beside ${direct}` };
  };
}

const legs = (count: number, goal: number): Row => ({
  id: `product-legs-${count}`,
  name: `A leg of the whole product, ${count} real calls, against the bare reflector`,
  unit: 'times',
  goal,
  better: 'less',
  bench: ['product-legs', `${count}`, '3', '4'],
  read: (output) => {
    const [, floor, product, times] =
      /floor ([\d.]+), product ([\d.]+) us a leg and second: ([\d.]+) times the floor/.exec(output) ?? [];
    if (times === undefined) return undefined;
    return { value: Number(times), beside: `${product} beside ${floor} µs a second` };
  },
});

const pesq = (id: string, line: string, goal: number): Row => ({
  id: `pesq-${id}`,
  name: `Speech with ${line} lost (PESQ, mu-law)`,
  unit: '',
  goal,
  better: 'more',
  bench: ['media-concealment'],
  read: matched(new RegExp(`^${line} +([\\d.]+)$`, 'm')),
});

export const ROWS: readonly Row[] = [
  {
    id: 'call-60',
    name: 'CPU of a call at 60 a second, platform and PostgreSQL',
    unit: 'ms',
    goal: 2.5,
    better: 'less',
    bench: ['calls', '1200', '60', '0,2'],
    read: callCost,
  },
  {
    id: 'call-400',
    name: 'CPU of a call at 400 a second, platform and PostgreSQL',
    unit: 'ms',
    goal: 1.2,
    better: 'less',
    bench: ['calls', '4000', '400', '0,2'],
    read: callCost,
  },
  {
    id: 'webhooks',
    name: 'Ordered signed webhooks a second, best round',
    unit: '/s',
    goal: 40_000,
    better: 'more',
    bench: ['webhooks'],
    read: (output) => {
      const rounds = [...output.matchAll(/bare POSTs (\d+)\/s, commit to delivered (\d+)\/s/g)];
      const best = rounds.toSorted((a, b) => Number(b[2]) - Number(a[2]))[0];
      return best === undefined ? undefined : { value: Number(best[2]), beside: `${best[1]}/s of bare POSTs` };
    },
  },
  {
    id: 'reads',
    name: 'Reads against Drizzle as usual',
    unit: 'times',
    goal: 6,
    better: 'more',
    bench: ['api'],
    read: timesDrizzle('read, ours', 'read, Drizzle as usual'),
  },
  {
    id: 'writes',
    name: 'Writes against Drizzle as usual',
    unit: 'times',
    goal: 8,
    better: 'more',
    bench: ['api'],
    read: timesDrizzle('write, ours', 'write, Drizzle as usual'),
  },
  {
    id: 'keyed-writes',
    name: 'Writes with Idempotency-Key against Drizzle as usual',
    unit: 'times',
    goal: 8,
    better: 'more',
    bench: ['api'],
    read: timesDrizzle('write with Idempotency-Key, ours', 'write, Drizzle as usual'),
  },
  legs(100, 1.5),
  legs(300, 1.2),
  legs(1_000, 1),
  {
    id: 'idle-cpu',
    name: 'CPU of an idle process',
    unit: '% of a core',
    goal: 0.2,
    better: 'less',
    bench: ['idle', '15', '5'],
    read: matched(
      /idle: platform ([\d.]+) %, PostgreSQL ([\d.]+) %, bare server ([\d.]+) %/,
      (database, bare) => `PostgreSQL ${database}, a bare server ${bare}`,
    ),
  },
  {
    id: 'idle-memory',
    name: 'Memory of an idle process',
    unit: 'MB',
    goal: 100,
    better: 'less',
    bench: ['idle', '15', '5'],
    read: matched(/resident (\d+) MB, bare server (\d+) MB/, (bare) => `a bare server ${bare}`),
  },
  {
    id: 'start',
    name: 'Start to ready on an existing database',
    unit: 's',
    goal: 0.4,
    better: 'less',
    bench: ['idle', '15', '5'],
    read: matched(/start to ready .*median ([\d.]+) s/),
  },
  {
    id: 'websocket',
    name: 'WebSocket Session, 16 kHz both ways, CPU a second',
    unit: 'ms',
    goal: 0.8,
    better: 'less',
    bench: ['websockets', '0', '500'],
    read: matched(/both ways: ([\d.]+) ms of CPU a Session and second/),
  },
  {
    id: 'recording',
    name: 'Recording a talking call, CPU a leg and tick',
    unit: 'µs',
    goal: 2,
    better: 'less',
    bench: ['recordings', '300', '6'],
    read: matched(/with: ([\d.-]+) us a leg and tick/),
  },
  {
    id: 'mp3',
    name: 'MP3 playback, CPU a Session and second',
    unit: 'µs',
    goal: 500,
    better: 'less',
    bench: ['playback', '200', '6'],
    read: matched(/CPU (\d+) us a Session and second \(silent leg (\d+)\)/, (silent) => `a silent leg ${silent}`),
  },
  {
    id: 'delay',
    name: 'Packet in to mix out at 1,000 legs, median',
    unit: 'ms',
    goal: 12,
    better: 'less',
    bench: ['media-delay', '1000', '10', '0'],
    read: matched(/packet in to its sound out +median +([\d.]+) +p99 +([\d.]+)/, (p99) => `p99 ${p99}`),
  },
  pesq('5', '5 %', 3.5),
  pesq('10', '10 %', 3.2),
  pesq('bursts', '6 % in bursts of three', 3),
  {
    id: 'flood-api',
    name: 'What a flood on one socket adds to the p99 of the API',
    unit: 'ms',
    goal: 10,
    better: 'less',
    bench: ['floods', '3', '2'],
    read: worstFlood(0),
  },
  {
    id: 'flood-sip',
    name: 'What a flood on one socket adds to the p99 of SIP',
    unit: 'ms',
    goal: 10,
    better: 'less',
    bench: ['floods', '3', '2'],
    read: worstFlood(1),
  },
  {
    id: 'webrtc',
    name: 'A WebRTC leg (G.711) against a plain leg',
    unit: 'times',
    goal: 2,
    better: 'less',
    bench: ['webrtc', '100', '3'],
    read: (output) => {
      const [, plain, webrtc, times] = /plain (\d+), WebRTC (\d+) us a leg and second: ([\d.]+) times/.exec(output) ?? [];
      return times === undefined ? undefined : { value: Number(times), beside: `${webrtc} beside ${plain} µs a second` };
    },
  },
  {
    id: 'webrtc-janus',
    name: 'A WebRTC leg (G.711) of the whole product, 40 real calls, against Janus AudioBridge',
    unit: 'times',
    goal: 0.33,
    better: 'less',
    bench: ['peers', '0', '3', '4', '40'],
    read: (output) => {
      const cost = (name: string) => Number(new RegExp(`WebRTC legs, ${name}: ([\\d.]+) us`).exec(output)?.[1] ?? Number.NaN);
      const [ours, theirs] = [cost('product'), cost('Janus')];
      return Number.isNaN(ours / theirs) ? undefined : { value: ours / theirs, beside: `${ours} beside ${theirs} µs a second` };
    },
  },
  {
    id: 'another-node',
    name: 'A command through another node of three, added at the median',
    unit: 'ms',
    goal: 1,
    better: 'less',
    bench: ['cluster'],
    read: throughAnother(0),
  },
  {
    id: 'another-node-p99',
    name: 'A command through another node of three, added at p99',
    unit: 'ms',
    goal: 10,
    better: 'less',
    bench: ['cluster'],
    read: throughAnother(1),
  },
];
