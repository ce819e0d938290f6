/** What a process uses, from outside of it, and the figures that benches make of it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * After it the compilers of a process are at rest, and the runtime's collector, which runs each second for half a
 * minute.
 */
export const REST_MS = 35_000;

/** What each thread of a process had used when it was seen last, those that have ended since among them. */
const threadsOf = new Map<number, Map<string, number>>();
/** The processes that a process was seen to have started, itself among them. */
const treeOf = new Map<number, Set<number>>();

/**
 * Nanoseconds that all threads of a process spent on a CPU, 0 where there is no such process. From schedstat, not from
 * ticks, which charge a program that a timer wakes up to twice too much. A thread that ends keeps what it had used when
 * this was asked last, so that the difference of two answers is never below zero.
 */
export function cpuNs(pid: number): number {
  const threads = threadsOf.get(pid) ?? new Map<string, number>();
  threadsOf.set(pid, threads);
  for (const task of entries(`/proc/${pid}/task`)) {
    const used = Number(read(`/proc/${pid}/task/${task}/schedstat`).split(' ')[0]);
    threads.set(task, Math.max(used, threads.get(task) ?? 0));
  }
  return [...threads.values()].reduce((total, used) => total + used, 0);
}

/**
 * Nanoseconds on a CPU of a process and of all that it started, and these started, also where they have ended since.
 */
function cpuNsOfTree(pid: number): number {
  const children = new Map<number, number[]>();
  for (const entry of entries('/proc')) {
    const parent = Number(/^\d+$/.test(entry) ? read(`/proc/${entry}/stat`).split(') ').at(-1)?.split(' ')[1] : Number.NaN);
    children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const seen = treeOf.get(pid) ?? new Set<number>();
  treeOf.set(pid, seen);
  const add = (one: number): void => {
    seen.add(one);
    for (const child of children.get(one) ?? []) add(child);
  };
  add(pid);
  return [...seen].reduce((total, one) => total + cpuNs(one), 0);
}

/** Nanoseconds on a CPU of the embedded PostgreSQL of a platform, by its data directory. */
export function databaseCpuNs(dataDir: string): number {
  return cpuNsOfTree(Number(read(join(dataDir, 'postgres/postmaster.pid')).split('\n')[0]));
}

/** Resident memory of a process in kB, NaN where there is no such process. */
export function rssKb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? Number.NaN);
}

/** The middle one of the values, the upper one of two; NaN of none. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** The file's text, or `0` where the process has just ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '0';
  }
}

function entries(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
