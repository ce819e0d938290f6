// The page of the demo: a button that calls, keys, and the events of the call as they come.
const EVENTS_MAX = 200;
const element = (id) => document.getElementById(id);
const [button, state, list, recording] = ['call', 'state', 'events', 'recording'].map(element);
const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/page`);
socket.binaryType = 'arraybuffer';
let phone;
/** How often a call was begun or ended. The microphone may be asked for until long after. */
let turn = 0;

const send = (message) => socket.send(JSON.stringify(message));
const say = (text) => {
  state.textContent = text;
};

function setCalling(isCalling) {
  button.setAttribute('aria-pressed', String(isCalling));
  button.textContent = isCalling ? 'Hang up' : 'Call';
}

/** The keys work while a call is connected. */
function setConnected(isConnected) {
  document.querySelector('.keys').disabled = !isConnected;
}

/** Shows that no call is up, and lets go of the microphone. */
async function endCall() {
  turn += 1;
  setCalling(false);
  setConnected(false);
  element('heard').value = 0;
  element('said').value = 0;
  const ended = phone;
  phone = undefined;
  await ended?.close();
}

const level = (samples) => Math.min(1, Math.sqrt(samples.reduce((sum, each) => sum + each * each, 0) / samples.length) / 8000);

/** Opens the audio of the page. A page that may not hear you can still play what comes. */
async function openAudio() {
  const context = new AudioContext();
  await context.audioWorklet.addModule('/audio.js');
  const node = new AudioWorkletNode(context, 'phone');
  node.connect(context.destination);
  node.port.onmessage = ({ data }) => {
    element('said').value = level(new Int16Array(data));
    if (socket.readyState === WebSocket.OPEN && socket.bufferedAmount < 65536) socket.send(data);
  };
  let stream;
  let refused;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true } });
    context.createMediaStreamSource(stream).connect(node);
  } catch (error) {
    refused = error.name;
  }
  return {
    context,
    node,
    /** Why there is no microphone, where there is none. */
    refused,
    close: () => {
      for (const track of stream?.getTracks() ?? []) track.stop();
      return context.close();
    },
  };
}

button.addEventListener('click', async () => {
  if (button.getAttribute('aria-pressed') === 'true') {
    if (phone !== undefined) return send({ type: 'hangup' });
    // The microphone is being asked for, and no call is placed yet.
    say('Ready');
    return endCall();
  }
  setCalling(true);
  say('Calling …');
  recording.hidden = true;
  turn += 1;
  const own = turn;
  const opened = await openAudio();
  await opened.context.resume();
  if (own !== turn) return opened.close();
  phone = opened;
  if (phone.refused !== undefined) say(`Calling without a microphone (${phone.refused}) …`);
  send({ type: 'call' });
});

for (const key of '123456789*0#') {
  const each = document.createElement('button');
  each.type = 'button';
  each.textContent = key;
  each.addEventListener('click', () => send({ type: 'key', key }));
  document.querySelector('.keys').append(each);
}

function show(event) {
  const { aud: _aud, event: name, timestamp, session_uuid: uuid = '', ...fields } = event;
  const more = Object.entries(fields).map(
    ([field, value]) => `${field}=${typeof value === 'object' ? JSON.stringify(value) : value}`,
  );
  const part = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
  const line = document.createElement('li');
  line.append(
    part('time', timestamp.slice(11, 23)),
    part('b', name),
    part('span', uuid.slice(-8)),
    part('small', more.join(' ')),
  );
  list.prepend(line);
  while (list.children.length > EVENTS_MAX) list.lastChild.remove();
}

const TELLS = {
  ready: ({ number, platform }) => {
    element('number').textContent = number;
    for (const place of ['console', 'docs'])
      Object.assign(element(place), { href: `${platform}/${place}`, hidden: platform === undefined });
    button.disabled = false;
    say('Ready');
  },
  calling: () => say('Ringing …'),
  over: async () => {
    say('The call is over');
    await endCall();
  },
  error: ({ message }) => say(message),
  event: ({ event }) => {
    show(event);
    if (event.event === 'session.answered') {
      say('Connected');
      setConnected(true);
    }
    if (event.event === 'recording.ended') {
      recording.href = event.pull_url;
      recording.hidden = false;
    }
  },
};

socket.addEventListener('message', ({ data }) => {
  if (typeof data === 'string') {
    const message = JSON.parse(data);
    TELLS[message.type]?.(message);
    return;
  }
  element('heard').value = level(new Int16Array(data));
  phone?.node.port.postMessage(data, [data]);
});
socket.addEventListener('close', () => {
  button.disabled = true;
  void endCall();
  say('The demo has stopped: start it again and reload this page');
});
