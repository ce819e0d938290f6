// The page's audio thread: what the microphone hears goes out as 16 kHz PCM, and what comes in is played.
const WIRE_HZ = 16000;
const FRAME = 320;
// A second of audio at most waits to be played; what is older is left out.
const QUEUE_MAX = WIRE_HZ;

class Phone extends AudioWorkletProcessor {
  constructor() {
    super();
    this.queue = [];
    this.queued = 0;
    this.place = 0;
    this.started = false;
    this.out = new Int16Array(FRAME);
    this.filled = 0;
    this.owed = 0;
    this.port.onmessage = ({ data }) => {
      const samples = new Int16Array(data);
      this.queue.push(samples);
      this.queued += samples.length;
      while (this.queued > QUEUE_MAX) this.queued -= this.queue.shift().length;
    };
  }

  process([input], [output]) {
    this.speak(input?.[0]);
    this.hear(output[0]);
    for (let channel = 1; channel < output.length; channel++) output[channel].set(output[0]);
    return true;
  }

  // Each sample of the wire is the mean of those that fall into it, which is filter enough for a voice.
  speak(samples) {
    if (samples === undefined) return;
    const step = WIRE_HZ / sampleRate;
    for (const sample of samples) {
      this.sum = (this.sum ?? 0) + sample;
      this.count = (this.count ?? 0) + 1;
      this.owed += step;
      if (this.owed < 1) continue;
      this.owed -= 1;
      this.out[this.filled++] = Math.max(-1, Math.min(1, this.sum / this.count)) * 32767;
      this.sum = 0;
      this.count = 0;
      if (this.filled < FRAME) continue;
      this.port.postMessage(this.out.slice().buffer);
      this.filled = 0;
    }
  }

  hear(samples) {
    // 60 ms are collected first, so that a late message leaves no gap.
    if (!this.started && this.queued < 3 * FRAME) return;
    this.started = true;
    const step = WIRE_HZ / sampleRate;
    for (let at = 0; at < samples.length; at++) {
      while (this.queue.length > 0 && this.place >= this.queue[0].length) {
        this.place -= this.queue[0].length;
        this.queued -= this.queue.shift().length;
      }
      if (this.queue.length === 0) {
        this.started = false;
        this.place = 0;
        return;
      }
      const whole = Math.floor(this.place);
      const now = this.queue[0][whole];
      const next = this.queue[0][whole + 1] ?? this.queue[1]?.[0] ?? now;
      samples[at] = (now + (next - now) * (this.place - whole)) / 32768;
      this.place += step;
    }
  }
}

registerProcessor('phone', Phone);
