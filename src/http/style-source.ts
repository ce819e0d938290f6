import { sha256 } from '../hash.ts';

/** The source of a page's own `<style>` in its policy (CSP 3 §6.7.3.3), so that no other is taken. */
export const styleSource = (style: string): string => `'sha256-${Buffer.from(sha256(style)).toString('base64')}'`;
