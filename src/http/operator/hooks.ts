/** The hooks by which the operator API tells the rest of the platform, and reads it. */
import type { CarrierReadings } from '../../call/ports/trunks.ts';
import type { NodeRow } from '../../database/node/nodes.ts';
import type { CallHistory } from '../../history/call-history.ts';

/** A node as the one that is asked sees it. */
export interface SeenNode extends NodeRow {
  /** It is the one that is asked. */
  readonly here: boolean;
  readonly suspect: boolean;
  readonly unreached: boolean;
  /** The names of the settings that should be alike, and are not. */
  readonly settingsApart: readonly string[];
}

/** The nodes of the platform, one where there is no cluster. */
export interface OperatorNodes {
  list(): Promise<readonly SeenNode[]>;
  /**
   * False: no such live node. `deadlineSec` undefined: it waits for its calls. `move`: it hands them to other nodes
   * meanwhile.
   */
  drain(nodeId: string, deadlineSec: number | undefined, mode: 'wait' | 'move'): Promise<boolean>;
  undrain(nodeId: string): Promise<boolean>;
}

/** Called after a change is durable, and awaited before it is answered. */
export interface OperatorHooks {
  /** The trunk of that name was set up, also as it was, or taken down. */
  readonly onTrunksChanged: (name: string) => void | Promise<void>;
  readonly onDeviceChanged: (username: string) => void | Promise<void>;
  readonly carrier: CarrierReadings;
  /** The nodes of the cluster, or undefined when their routes are not served. */
  readonly nodes?: OperatorNodes | undefined;
  /** The timelines of calls. Undefined when none are kept. */
  readonly history?: CallHistory | undefined;
  /** Names of `X-` header fields of SIP that timelines do not show, in lower case. */
  readonly sipTraceHide?: readonly string[];
}
