/** The frame of every page: who is logged in, where one is, and the page itself. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { CallPage } from './call/call-page.tsx';
import { AppsPage } from './page/apps.tsx';
import { CallsPage } from './page/calls.tsx';
import { EventsPage } from './page/events.tsx';
import { LoginPage } from './page/login.tsx';
import { MessagesPage } from './page/messages.tsx';
import { RoomsPage } from './page/rooms.tsx';
import { TrunksPage } from './page/trunks.tsx';
import { TryPage } from './page/try.tsx';
import { Brand } from './part/brand.tsx';
import { Problem } from './part/parts.tsx';
import { RoleContext } from './part/role.ts';
import { currentSession, logIn, logOut, Refused, watchSession } from './platform/api.ts';
import { startLive, stopLive, useIsLive, wordsOf } from './platform/live.ts';
import { followLink, go, mayLeave, scrollOfReturn, useIsHeld, usePlace } from './platform/router.ts';
import { storedZone, storeZone, type Zone, ZoneContext } from './platform/time.ts';
import type { Session } from './platform/types.ts';

const PAGES = [
  { path: '/console/calls', name: 'Calls', page: CallsPage, writes: false },
  { path: '/console/rooms', name: 'Rooms', page: RoomsPage, writes: false },
  { path: '/console/messages', name: 'Messages', page: MessagesPage, writes: false },
  { path: '/console/applications', name: 'Applications', page: AppsPage, writes: false },
  { path: '/console/trunks', name: 'Trunks', page: TrunksPage, writes: false },
  { path: '/console/events', name: 'Events', page: EventsPage, writes: false },
  { path: '/console/try', name: 'Try it', page: TryPage, writes: true },
] as const;
const ONE_CALL = /^\/console\/calls\/([0-9a-f-]{36})$/;

const ONE_TIME_LOGIN = /^#login=([A-Za-z0-9_-]+)$/;

const OVER =
  'The session is over. Your call goes on, and everything else waits: log in again in another tab, or here after the call.';

const SPENT = 'This login was used already or is older than five minutes.';

/** The session, or why there is none. */
type Login = { readonly session: Session } | { readonly reason: string } | 'unknown';

export function App() {
  const [login, setLogin] = useState<Login>('unknown');
  /** The session is over. The page stays while something would be lost by it: a call, which needs no session. */
  const [isOver, setOver] = useState(false);
  const isHeld = useIsHeld();
  const enter = (next: Login) => {
    setLogin(next);
    setOver(false);
  };
  useEffect(() => {
    watchSession({ over: () => setOver(true), renewed: (session) => enter({ session }) });
    void opening().then(enter);
    // A link that logs in may be pasted into a page that is open already: only the fragment of the address changes.
    const follow = () => {
      if (ONE_TIME_LOGIN.test(location.hash)) void opening().then(enter);
    };
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  const isIn = login !== 'unknown' && 'session' in login && (!isOver || isHeld);
  useEffect(() => {
    if (isIn) startLive();
    return stopLive;
  }, [isIn]);
  if (login === 'unknown') return <p class="empty">Loading …</p>;
  if (!isIn) {
    const reason = 'reason' in login ? login.reason : 'The session is over. Please log in again.';
    return <LoginPage key={reason} reason={reason} onSession={(session) => enter({ session })} />;
  }
  return <Frame session={login.session} isOver={isOver} onLogOut={() => setLogin({ reason: '' })} />;
}

/** Exchanges the one-time login of the address bar, if there is one, and removes it from there at once. */
async function opening(): Promise<Login> {
  const given = ONE_TIME_LOGIN.exec(location.hash)?.[1];
  if (given !== undefined) history.replaceState(null, '', location.pathname + location.search);
  try {
    if (given !== undefined) return { session: await logIn({ login: given }) };
    const session = await currentSession();
    return session === undefined ? { reason: '' } : { session };
  } catch (error) {
    const session = given === undefined ? undefined : await currentSession().catch(() => undefined);
    if (session !== undefined) return { session };
    if (given === undefined) return { reason: wordsOf(error) };
    return { reason: error instanceof Refused && error.status === 401 ? SPENT : `${wordsOf(error)} The link may still be good.` };
  }
}

function Frame(props: { readonly session: Session; readonly isOver: boolean; onLogOut(): void }) {
  const { session, isOver, onLogOut } = props;
  const { path } = usePlace();
  const [zone, setZone] = useState<Zone>(storedZone);
  const [error, setError] = useState('');
  const main = useRef<HTMLElement>(null);
  const pages = PAGES.filter(({ writes }) => !writes || session.role === 'operator');
  const callUuid = ONE_CALL.exec(path)?.[1];
  const here = callUuid === undefined ? pages.find((each) => each.path === path) : pages[0];
  useEffect(() => {
    if (path === '/console' || path === '/console/') go('/console/calls', { replace: true });
  }, [path]);
  // This is done before the page is seen: later it would take the focus from what the first key gave it to.
  useLayoutEffect(() => {
    setError('');
    document.title = `${callUuid === undefined ? (here?.name ?? 'Console') : 'Call'} · Sidetone`;
    // A reader of the screen begins with the new page, not with the link that led to it.
    main.current?.focus({ preventScroll: true });
    // The pages are in a row that scrolls on a narrow screen. This may scroll the page too, so it comes first.
    show(document.querySelector('.top [aria-current]'));
    scrollTo(0, scrollOfReturn() ?? 0);
  }, [path]);
  const leave = async () => {
    if (!mayLeave()) return;
    try {
      await logOut();
      onLogOut();
    } catch (problem) {
      setError(`You are still logged in, because logging out failed. ${wordsOf(problem)}`);
    }
  };
  const change = (next: Zone) => {
    storeZone(next);
    setZone(next);
  };
  return (
    <RoleContext.Provider value={session.role}>
      <ZoneContext.Provider value={zone}>
        <Following>
          <a class="skip" href="#main">
            Skip to the page
          </a>
          <header class="top">
            <Brand />
            <nav aria-label="Pages" onFocusIn={({ target }) => show(target)}>
              {pages.map(({ path: to, name }) => (
                <a key={to} href={to} aria-current={here?.path === to ? 'page' : undefined}>
                  {name}
                </a>
              ))}
            </nav>
            <Aside role={session.role} zone={zone} onZone={change} onLeave={() => void leave()} />
          </header>
          <main id="main" tabIndex={-1} ref={main}>
            <Problem words={isOver ? OVER : error} />
            {callUuid !== undefined ? <CallPage key={callUuid} uuid={callUuid} /> : here ? <here.page /> : <Nowhere />}
          </main>
        </Following>
      </ZoneContext.Provider>
    </RoleContext.Provider>
  );
}

/** Scrolls the row of pages to one of them. A browser leaves a link that it focuses where half of it is seen. */
const show = (link: EventTarget | null) =>
  link instanceof Element && link.scrollIntoView({ block: 'nearest', inline: 'nearest' });

/** What stands at the right: the way to the documentation, whether pages are live, the zone of times, the way out. */
function Aside(props: { readonly role: Session['role']; readonly zone: Zone; onZone(zone: Zone): void; onLeave(): void }) {
  return (
    <div class="aside">
      <a href="/docs">Docs</a>
      <LiveBadge />
      <label>
        <span class="hidden-text">Times in</span>
        <select
          value={props.zone}
          onChange={({ currentTarget }) => props.onZone(currentTarget.value === 'utc' ? 'utc' : 'local')}
        >
          <option value="local">Local time</option>
          <option value="utc">UTC</option>
        </select>
      </label>
      {props.role === 'reader' && <span class="badge">read only</span>}
      <button type="button" onClick={props.onLeave}>
        Log out
      </button>
    </div>
  );
}

function Following({ children }: { readonly children: preact.ComponentChildren }) {
  useEffect(() => {
    document.addEventListener('click', followLink);
    return () => document.removeEventListener('click', followLink);
  }, []);
  return <>{children}</>;
}

function LiveBadge() {
  const isLive = useIsLive();
  return (
    <span class={isLive ? 'badge good live' : 'badge warn'} role="status">
      <span class="dot" aria-hidden="true" />
      {isLive ? 'live' : 'not live'}
    </span>
  );
}

const Nowhere = () => (
  <div class="empty">
    <h1>There is no such page</h1>
    <a href="/console/calls">Go to the calls</a>
  </div>
);
