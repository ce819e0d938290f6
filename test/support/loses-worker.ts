/** Loaded before the platform (`BUN_OPTIONS=--preload=…`): at SIGUSR2 its last media worker is lost. */
let last: Worker | undefined;

if (Bun.isMainThread) {
  const Real = globalThis.Worker;
  globalThis.Worker = class extends Real {
    constructor(...given: ConstructorParameters<typeof Real>) {
      super(...given);
      if (String(given[0]).endsWith('/media/worker/worker.ts')) last = this;
    }
  };
  process.on('SIGUSR2', () => last?.terminate());
}

export {};
