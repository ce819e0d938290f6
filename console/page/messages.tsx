/** The latest short messages. */
import { useState } from 'preact/hooks';
import { AppName, AppSelect, useApps } from '../part/apps.tsx';
import { type Column, Count, Empty, Problem, State, Table, Time } from '../part/parts.tsx';
import { Foreign } from '../part/text.tsx';
import { visible } from '../part/visible.ts';
import { ask, queryOf } from '../platform/api.ts';
import { useLoaded, whileLoading } from '../platform/live.ts';
import type { App, Message } from '../platform/types.ts';

export function MessagesPage() {
  const { apps, error: appsError } = useApps();
  const [appUuid, setAppUuid] = useState('');
  const { data, error } = useLoaded(
    appUuid,
    (signal) =>
      ask<{ messages: readonly Message[] }>('GET', `/messages${queryOf({ app_uuid: appUuid, limit: 200 })}`, undefined, signal),
    { on: ({ name }) => name === 'message.status_changed', everyMs: 10_000 },
  );
  return (
    <>
      <div class="head">
        <h1>Messages</h1>
        <Count of={appUuid} isLoaded={data !== undefined}>
          {data === undefined ? whileLoading(error) : `the latest ${data.messages.length}`}
        </Count>
      </div>
      <div class="filters">
        <AppSelect apps={apps} value={appUuid} all onChange={setAppUuid} />
      </div>
      <Problem words={error || appsError} />
      {data !== undefined && data.messages.length > 0 && (
        <div class="card">
          <Table label="Messages" columns={columnsOf(apps)} rows={data.messages} keyOf={(each) => each.message_uuid} />
        </div>
      )}
      {data?.messages.length === 0 && (
        <Empty title="No messages">
          <p>
            An application sends one with <code>POST /v1/messages</code>. <code>SMS_PROVIDER</code> says where they go; the
            sandbox delivers within a second.
          </p>
        </Empty>
      )}
    </>
  );
}

const columnsOf = (apps: readonly App[]): readonly Column<Message>[] => [
  { name: 'Sent', cell: (each) => <Time at={each.created_at} /> },
  { name: 'Status', cell: (each) => <State state={each.status} /> },
  { name: 'From', party: true, cell: (each) => <Foreign text={each.from} /> },
  { name: 'To', party: true, cell: (each) => <Foreign text={each.to} /> },
  { name: 'Application', party: true, cell: (each) => <AppName apps={apps} uuid={each.app_uuid} /> },
  { name: 'Text', text: true, cell: (each) => <Foreign text={each.text} /> },
  { name: 'Parts', number: true, cell: (each) => each.segments },
  { name: 'Error', party: true, cell: (each) => visible(each.error_message || each.error_code) || <span class="quiet">–</span> },
];
