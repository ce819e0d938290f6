/** The routes outside authentication: health, metrics, the API reference (contract §1). */
import { readFile } from 'node:fs/promises';
import { ofPackage } from '../../installation.ts';
import { newTraceparent } from '../../tracing/tracing.ts';
import type { Documentation } from '../documentation/documentation.ts';
import { exampleNames, pageNames } from '../documentation/files.ts';
import { headOf, SITE_STYLE, siteBar } from '../documentation/site.ts';
import type { HttpMetrics } from '../metrics.ts';
import { typesLoaded } from '../shape/type.ts';
import { styleSource } from '../style-source.ts';

export interface PublicOptions {
  readonly metrics: Pick<HttpMetrics, 'exposition'>;
  /**
   * Tells what is up, by name; the platform is ready when all of it is but for NATS, without which a node serves its
   * own calls. Never rejects.
   */
  readonly ready: () => Promise<Readonly<Record<string, boolean>>>;
  readonly openapi: () => object;
  /** Reads a file of the page; from the disk unless told. */
  readonly readText?: (path: string) => Promise<string>;
}

/** The page's own files, from the npm package: nothing is loaded from anywhere else. */
const FILES = [
  ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  ['swagger-ui.css', 'text/css; charset=utf-8'],
] as const;
const START = `const dark = matchMedia('(prefers-color-scheme: dark)');
const dress = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', dress);
dress();
const name = () => document.getElementById('servers')?.setAttribute('aria-label', 'Server');
SwaggerUIBundle({ url: '/openapi.json', dom_id: '#reference', deepLinking: true, supportedSubmitMethods: [], validatorUrl: null, onComplete: name });`;
/** What the package has too little of: contrast (WCAG AA wants 4.5 to 1), and a mark of what has the focus. */
const LEGIBLE = `html:not(.dark-mode) .swagger-ui :is(.info .link, .info .base-url, .url, .nostyle .url, a.link, .wrapper a.link){color:#1b5e9e}
html:not(.dark-mode) .swagger-ui :is(.btn.authorize, .btn.authorize span){color:#1c6b42}
html:not(.dark-mode) .swagger-ui .opblock .opblock-summary-method{color:#000;text-shadow:none}
html:not(.dark-mode) .swagger-ui :is(.parameter__in, .json-schema-2020-12-expand-deep-button){color:#585858}
.dark-mode .swagger-ui .header-col{color:inherit}
.swagger-ui .microlight [style*='rgb(211, 99, 99)']{color:#f2a9a9 !important}
html:not(.dark-mode) .swagger-ui .opblock.opblock-head .opblock-summary-method{color:#fff}
.swagger-ui .info .title small{background:#5b6270}
.swagger-ui .info .title small.version-stamp{background:#4b6a00}
:focus-visible{outline:2px solid !important;outline-offset:2px}`;
const PAGE = `${headOf('API reference · Sidetone')}
<link rel="stylesheet" href="/docs/swagger-ui.css">
<style>${SITE_STYLE}</style>
<style>${LEGIBLE}</style>
<script src="/docs/swagger-ui-bundle.js" defer></script>
<script src="/docs/start.js" defer></script>
</head>
<body>
${siteBar('/docs/reference')}
<div id="reference"></div>
</body>
</html>
`;
// The reference needs its own script and document, and nothing from anywhere else.
const POLICY = `default-src 'none'; script-src 'self'; style-src 'self' ${styleSource(SITE_STYLE)} ${styleSource(LEGIBLE)}; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

export type PublicHandler = () => Promise<Response>;

/** Path → handler; GET and HEAD only. */
export function publicRoutes(options: PublicOptions): ReadonlyMap<string, PublicHandler> {
  const json = (status: number, body: object) => answer(JSON.stringify(body), 'application/json', status);
  const { readText = (path: string) => readFile(path, 'utf8') } = options;
  const read = new Map<string, Promise<Blob>>();
  const file = async (name: string, type: string): Promise<Response> => {
    const reading = read.get(name) ?? readText(ofPackage(`swagger-ui-dist/${name}`)).then((text) => new Blob([text]));
    read.set(name, reading);
    // What could not be read is not kept: the next request tries again.
    reading.catch(() => read.delete(name));
    return answer(await reading, type, 200, { 'cache-control': 'public, max-age=86400' });
  };
  let document: Blob | undefined;
  return new Map<string, PublicHandler>([
    ['/healthz', async () => json(200, { status: 'ok' })],
    [
      '/readyz',
      async () => {
        const parts = await options.ready();
        const all = Object.entries(parts).every(([name, isUp]) => isUp || name === 'nats');
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
        await typesLoaded();
        document ??= new Blob([JSON.stringify(options.openapi())]);
        return answer(document, 'application/json');
      },
    ],
    ['/docs/reference', async () => answer(PAGE, 'text/html; charset=utf-8', 200, { 'content-security-policy': POLICY })],
    ...documentation(),
    ['/docs/start.js', async () => answer(START, 'text/javascript; charset=utf-8')],
    ...FILES.map(([name, type]): [string, PublicHandler] => [`/docs/${name}`, () => file(name, type)]),
  ]);
}

/**
 * The pages of `docs/`, for reading and as they are. They have no script. What they say and what renders them is
 * loaded with the first that is asked for: an idle process does without these 1.6 MB.
 */
function documentation(): readonly (readonly [string, PublicHandler])[] {
  const pages = pageNames();
  const examples = exampleNames();
  let loaded: Documentation | undefined;
  const load = async (): Promise<Documentation> => {
    if (loaded !== undefined) return loaded;
    const { Documentation } = await import('../documentation/documentation.ts');
    loaded ??= new Documentation(pages, examples);
    return loaded;
  };
  /** Makes a text once, as anybody may ask for it, and has its readers share it. */
  const shared = (
    type: 'html' | 'plain' | 'markdown',
    text: (texts: Documentation) => string,
    more: (texts: Documentation) => Readonly<Record<string, string>> = () => ({}),
  ): PublicHandler => {
    let body: Blob | undefined;
    return async () => {
      const texts = await load();
      body ??= new Blob([text(texts)]);
      return answer(body, `text/${type}; charset=utf-8`, 200, more(texts));
    };
  };
  const html = (text: (texts: Documentation) => string): PublicHandler =>
    shared('html', text, ({ policy }) => ({ 'content-security-policy': policy }));
  return [
    ...at(
      ['/docs', '/docs/'],
      html((texts) => texts.index()),
    ),
    ['/llms.txt', shared('plain', (texts) => texts.list())],
    // A program is read here and not run, a page for browsers too.
    ...examples.map((name) => [`/docs/examples/${name}`, shared('plain', (texts) => texts.example(name))] as const),
    ...pages.flatMap((name) => [
      ...at(
        addresses(name),
        html((texts) => texts.html(name)),
      ),
      [`/docs/${name}.md`, shared('markdown', (texts) => texts.markdown(name))] as const,
    ]),
  ];
}

const at = (paths: readonly string[], handler: PublicHandler) => paths.map((path) => [path, handler] as const);

/** The paths of a page for reading: the overview of a folder is at the folder too. */
const addresses = (name: string): readonly string[] =>
  name.endsWith('/README') ? [`/docs/${name}`, `/docs/${name.slice(0, -'/README'.length)}`] : [`/docs/${name}`];

/**
 * The runtime sends each reader a copy of a text, which is there until the reader has taken it, and readers without a
 * key may take a minute. They share a Blob.
 */
function answer(body: string | Blob, contentType: string, status = 200, more: Readonly<Record<string, string>> = {}): Response {
  const headers = { 'content-type': contentType, 'x-content-type-options': 'nosniff', traceparent: newTraceparent(), ...more };
  return new Response(body, { status, headers });
}
