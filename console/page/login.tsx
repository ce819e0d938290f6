/** Logging in: the operator's token becomes a cookie that no script can read. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Brand } from '../part/brand.tsx';
import { Problem } from '../part/parts.tsx';
import { logIn } from '../platform/api.ts';
import { wordsOf } from '../platform/live.ts';
import type { Session } from '../platform/types.ts';

export function LoginPage({ reason, onSession }: { readonly reason: string; onSession(session: Session): void }) {
  const [token, setToken] = useState('');
  const [error, setError] = useState(reason);
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  // The page is this field. It may also have taken the place of a page that had the focus.
  useLayoutEffect(() => field.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      onSession(await logIn({ token: token.trim() }));
    } catch (problem) {
      setError(wordsOf(problem));
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <Brand />
      <div class="card">
        <h1>Log in</h1>
        <Problem words={error} />
        <form class="form" onSubmit={submit}>
          <label>
            Operator token
            <input
              ref={field}
              type="password"
              name="token"
              autocomplete="current-password"
              required
              value={token}
              onInput={({ currentTarget }) => setToken(currentTarget.value)}
            />
          </label>
          <button class="primary" type="submit" disabled={isBusy}>
            Log in
          </button>
        </form>
        <p class="quiet small">
          The token is <code>OPERATOR_TOKEN</code>, or the file <code>operator.token</code> in the platform’s data directory.{' '}
          <code>OPERATOR_READ_TOKEN</code> opens a session that may only read.
        </p>
      </div>
    </main>
  );
}
