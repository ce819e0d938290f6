/** What is outside authentication: health, metrics, the API reference (contract §1). */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { newTraceparent } from '../admission/trace.ts';
import type { HttpMetrics } from '../metrics.ts';

export interface PublicOptions {
  readonly metrics: Pick<HttpMetrics, 'exposition'>;
  /** What is up, by name; all of them: ready. Never rejects. */
  readonly ready: () => Promise<Readonly<Record<string, boolean>>>;
  readonly openapi: () => Promise<object>;
}

const SCRIPT = 'rapidoc/dist/rapidoc-min.js';
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sidetone API reference</title>
<script src="/docs/rapidoc-min.js" defer></script>
</head>
<body>
<rapi-doc spec-url="/openapi.json" render-style="read" load-fonts="false" show-header="false" allow-spec-url-load="false"
  allow-spec-file-load="false" allow-spec-file-download="true" allow-server-selection="false" schema-style="table"></rapi-doc>
</body>
</html>
`;
// The reference needs its own script and document, and nothing from anywhere else.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export type PublicHandler = () => Promise<Response>;

/** Path → handler; GET and HEAD only. */
export function publicRoutes(options: PublicOptions): ReadonlyMap<string, PublicHandler> {
  const json = (status: number, body: object) => answer(JSON.stringify(body), 'application/json', status);
  let script: Promise<string> | undefined;
  let document: Promise<string> | undefined;
  return new Map<string, PublicHandler>([
    ['/healthz', async () => json(200, { status: 'ok' })],
    [
      '/readyz',
      async () => {
        const parts = await options.ready();
        const all = Object.values(parts).every(Boolean);
        return json(all ? 200 : 503, { status: all ? 'ready' : 'unavailable', ...parts });
      },
    ],
    [
      '/metrics',
      async () => {
        const { text, contentType } = await options.metrics.exposition();
        return answer(text, contentType);
      },
    ],
    [
      '/openapi.json',
      async () => {
        document ??= options.openapi().then((each) => JSON.stringify(each));
        return answer(await document, 'application/json');
      },
    ],
    ['/docs', async () => answer(PAGE, 'text/html; charset=utf-8', 200, { 'content-security-policy': POLICY })],
    [
      '/docs/rapidoc-min.js',
      async () => {
        script ??= readFile(createRequire(import.meta.url).resolve(SCRIPT), 'utf8');
        return answer(await script, 'text/javascript; charset=utf-8', 200, { 'cache-control': 'public, max-age=86400' });
      },
    ],
  ]);
}

function answer(body: string, contentType: string, status = 200, more: Readonly<Record<string, string>> = {}): Response {
  const headers = { 'content-type': contentType, 'x-content-type-options': 'nosniff', traceparent: newTraceparent(), ...more };
  return new Response(body, { status, headers });
}
