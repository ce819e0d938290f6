/** What the doctor finds: one line a check, with what to do about it. */

/** `fault`: calls do not work. `warning`: they work worse than they could. */
type Status = 'ok' | 'warning' | 'fault';

export interface Check {
  /** `sip_port`, `trunk:acme`, … */
  readonly name: string;
  readonly status: Status;
  readonly found: string;
  /** The command or setting that mends it. `""` when there is nothing to do. */
  readonly remedy: string;
}

export const ok = (name: string, found: string): Check => ({ name, status: 'ok', found, remedy: '' });
export const warning = (name: string, found: string, remedy: string): Check => ({ name, status: 'warning', found, remedy });
export const fault = (name: string, found: string, remedy: string): Check => ({ name, status: 'fault', found, remedy });

/** The exit code: 0 when all is well, 1 with warnings, 2 with faults. */
export const exitCode = (checks: readonly Check[]): 0 | 1 | 2 =>
  checks.some(({ status }) => status === 'fault') ? 2 : checks.some(({ status }) => status === 'warning') ? 1 : 0;
