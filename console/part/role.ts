/** What the session may do. The platform decides; the console only leaves out what would be refused. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Session } from '../platform/types.ts';

export const RoleContext = createContext<Session['role']>('reader');

/** Whether the session may change something. */
export const useMayWrite = (): boolean => useContext(RoleContext) === 'operator';
