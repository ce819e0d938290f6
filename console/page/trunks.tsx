/** Trunks with their state, and the SIP requests that were refused, each with what mends it. */
import { useState } from 'preact/hooks';
import { Empty, Facts, Problem, Table, Time } from '../part/parts.tsx';
import { useMayWrite } from '../part/role.ts';
import { Address, Foreign } from '../part/text.tsx';
import { visible } from '../part/visible.ts';
import { ask } from '../platform/api.ts';
import { useLoaded, wordsOf } from '../platform/live.ts';
import type { Refusal, Trunk } from '../platform/types.ts';

const POLL_MS = 5000;
const PROBED_MS = 1000;

export function TrunksPage() {
  const trunks = useLoaded('trunks', (signal) => ask<{ trunks: readonly Trunk[] }>('GET', '/trunks', undefined, signal), {
    everyMs: POLL_MS,
  });
  const refusals = useLoaded(
    'refusals',
    (signal) => ask<{ refusals: readonly Refusal[] }>('GET', '/refusals', undefined, signal),
    { everyMs: POLL_MS },
  );
  const [error, setError] = useState('');
  const probe = async (name: string) => {
    try {
      await ask('POST', `/trunks/${encodeURIComponent(name)}/probe`, {});
      setError('');
      setTimeout(trunks.reload, PROBED_MS);
    } catch (problem) {
      setError(wordsOf(problem));
    }
  };
  return (
    <>
      <div class="head">
        <h1>Trunks</h1>
      </div>
      <Problem words={error || trunks.error} />
      {trunks.data?.trunks.length === 0 && (
        <Empty title="No trunks">
          <p>
            A trunk is the way to a carrier: <code>bin/sidetone trunks set NAME --uri sip:HOST --cidr ADDRESS/32</code>
          </p>
          <p>
            Without a carrier, <code>bin/sidetone dev</code> has one that loops calls back.
          </p>
        </Empty>
      )}
      <div class="grid">
        {trunks.data?.trunks.map((trunk) => (
          <TrunkCard key={trunk.name} trunk={trunk} onProbe={() => void probe(trunk.name)} />
        ))}
      </div>
      <section class="card" aria-labelledby="refused" style={{ marginTop: '1rem' }}>
        <h2 id="refused">Refused SIP requests</h2>
        <Problem words={refusals.error} />
        {refusals.data?.refusals.length === 0 && (
          <p class="quiet">None since the start. What is refused appears with its remedy.</p>
        )}
        {(refusals.data?.refusals.length ?? 0) > 0 && <Refusals rows={refusals.data?.refusals ?? []} />}
      </section>
    </>
  );
}

function TrunkCard({ trunk, onProbe }: { readonly trunk: Trunk; onProbe(): void }) {
  const mayWrite = useMayWrite();
  const { status } = trunk;
  const isLoopback = trunk.uri === 'loopback:';
  return (
    <section class="card" aria-labelledby={`trunk-${trunk.name}`}>
      <div class="head">
        <h2 id={`trunk-${trunk.name}`}>{trunk.name}</h2>
        <Health trunk={trunk} />
      </div>
      <Facts
        of={[
          ['Address', <code key="uri">{trunk.uri}</code>],
          ['Inbound from', trunk.inbound_cidrs.join(', ')],
          ['Registered', registration(trunk)],
          ['Last probe', probeOf(trunk)],
          ['Channels in use', `${status.channels_in_use}${trunk.max_channels === undefined ? '' : ` of ${trunk.max_channels}`}`],
          ['Calls in 24 h', `${status.calls_24h}, of which ${status.failures_24h} failed`],
          ['SRTP', trunk.srtp],
        ]}
      />
      {status.last_probe?.ok === false && (
        <p class="small">
          Check its address, port and transport, and the firewall between. <code>bin/sidetone doctor</code> says more.
        </p>
      )}
      {mayWrite && !isLoopback && (
        <p>
          <button type="button" onClick={onProbe}>
            Probe now
          </button>
        </p>
      )}
    </section>
  );
}

function Health({ trunk: { uri, register, status } }: { readonly trunk: Trunk }) {
  if (uri === 'loopback:') return <span class="badge good">loopback</span>;
  if (register && !status.registered) return <span class="badge bad">not registered</span>;
  if (status.last_probe === undefined) return <span class="badge">not probed yet</span>;
  return status.last_probe.ok ? <span class="badge good">up</span> : <span class="badge bad">does not answer</span>;
}

function registration({ register, status }: Trunk) {
  if (!register) return undefined;
  if (!status.registered) return <span class="error">no; {whyNot(status.register_sip_status)}</span>;
  return (
    <>
      until <Time at={status.registered_until} />
    </>
  );
}

/** Why a trunk is not registered, by what the last REGISTER of this node was answered with, 0 for nothing. */
function whyNot(answer: number | undefined): string {
  if (answer === undefined) return 'this node has heard of no answer yet';
  if (answer === 0) return 'its registrar does not answer';
  const remedy = [401, 403, 407].includes(answer) ? 'check its user name and password' : 'ask the carrier about its account';
  return `refused (SIP ${answer}): ${remedy}`;
}

function probeOf({ status: { last_probe: probe } }: Trunk) {
  if (probe === undefined) return undefined;
  const outcome = probe.ok ? `${probe.rtt_ms} ms` : probe.sip_status === 0 ? 'no answer' : 'refused';
  return (
    <>
      <Time at={probe.at} /> {outcome}
      {probe.sip_status > 0 && ` (SIP ${probe.sip_status})`}
    </>
  );
}

const Refusals = ({ rows }: { readonly rows: readonly Refusal[] }) => (
  <Table
    label="Refused SIP requests"
    rows={rows}
    keyOf={(row) => `${row.first_at} ${row.source} ${row.method} ${row.reason} ${row.to}`}
    columns={[
      { name: 'Last', cell: (row) => <Time at={row.at} /> },
      { name: 'Times', number: true, cell: (row) => row.count },
      { name: 'From', cell: (row) => `${row.source} (${row.transport})` },
      {
        name: 'Request',
        text: true,
        cell: (row) => (
          <>
            {visible(row.method)} <Address text={row.from} /> → <Address text={row.to} />
          </>
        ),
      },
      { name: 'Answer', number: true, cell: (row) => row.status },
      {
        name: 'Why, and what mends it',
        text: true,
        cell: (row) => (
          <>
            <Foreign text={row.reason} />
            <br />
            <strong>{visible(row.remedy)}</strong>
          </>
        ),
      },
    ]}
  />
);
