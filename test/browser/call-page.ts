/** A page that calls with the SDK's `connectBrowser`, for whatever browser opens it. */
import { join } from 'node:path';

/** The page: it says a tone, and tells the loudest frequency of what it hears. */
const PAGE = `<!doctype html><meta charset="utf-8"><title>Call</title><script type="module">
import { connectBrowser } from '/browser.js';
window.start = async (url, token, hz) => {
  const context = new AudioContext();
  const tone = context.createOscillator();
  tone.frequency.value = hz;
  const said = context.createMediaStreamDestination();
  tone.connect(said);
  tone.start();
  const call = await connectBrowser({ url, token, audio: said.stream });
  const speaker = document.body.appendChild(document.createElement('audio'));
  speaker.srcObject = call.audio;
  speaker.play();
  window.analyser = context.createAnalyser();
  window.analyser.fftSize = 8192;
  context.createMediaStreamSource(call.audio).connect(window.analyser);
  window.rate = context.sampleRate;
  window.call = call;
  window.over = false;
  call.ended.then(() => { window.over = true; });
  return call.sessionUuid;
};
window.loudest = () => {
  const levels = new Float32Array(window.analyser.frequencyBinCount);
  window.analyser.getFloatFrequencyData(levels);
  const at = levels.indexOf(Math.max(...levels));
  return levels[at] > -60 ? Math.round(at * window.rate / window.analyser.fftSize) : 0;
};
window.ready = true;
</script>`;

type Answering = Response | Promise<Response>;

/** A site of call pages on loopback. What `own` does not answer is the page and the SDK of `callPage`. */
export const callSite = (own: (pathname: string, request: Request) => Answering | undefined) =>
  Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname } = new URL(request.url);
      return own(pathname, request) ?? callPage(pathname);
    },
  });

/** The page, the SDK as it is bundled for it, and the page of the examples. */
async function callPage(pathname: string): Promise<Response> {
  const html = { headers: { 'content-type': 'text/html' } };
  const root = join(import.meta.dir, '../..');
  if (pathname === '/example') return new Response(Bun.file(join(root, 'docs/examples/browser-call.html')), html);
  if (pathname !== '/browser.js') return new Response(PAGE, html);
  const built = await Bun.build({ entrypoints: [join(root, 'sdk/typescript/src/browser.ts')], target: 'browser' });
  return new Response(await built.outputs[0]?.text(), { headers: { 'content-type': 'text/javascript' } });
}
