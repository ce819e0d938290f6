/** The types of the SDK of Python, as Python itself and as mypy reads them. */
import { describe, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SDK = join(import.meta.dir, '../../sdk/python');
const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0;
const hasMypy = spawnSync('mypy', ['--version']).status === 0;

const READ = `
import typing
from sidetone import types
for name, each in vars(types).items():
    if isinstance(each, type):
        typing.get_type_hints(each)
received = types.MessageReceivedEvent
print(received.__total__, sorted(typing.get_type_hints(received)) == sorted(received.__required_keys__ | {"test"}))
print(typing.get_type_hints(types.SessionEndedEvent)["quality"] is types.CallQuality)
`;

const USED = `from sidetone import Sidetone, verify_webhook

client = Sidetone(base_url="http://127.0.0.1", app_uuid="app_1", api_key="key")
call = client.sessions.dial(
    from_="+15550100", to="+15550199", ring_timeout_sec=30, machine_detection={"timeout_ms": 2000}, sip_headers={"X-Tag": "a"}
)
client.sessions.play(call["session_uuid"], type="push", media_format={"encoding": "pcm_s16le", "sample_rate": 16000})
uuid: str = call["session_uuid"]
for session in client.sessions.list(state=["answered"]):
    print(session["state"], session["created_at"].upper())
for recording in client.recordings.search():
    print(recording["recording_uuid"].upper(), recording.get("duration", 0) + 1)
fields = verify_webhook(b"", {}, "whsec_").fields
if fields["event"] == "session.ended":
    print(fields["duration_seconds"] + 1)
if fields["event"] == "payment.card.collected":
    if fields["status"] == "failed":
        print(fields["reason"].upper())
    else:
        print(fields["payment_method_details"]["card"]["last4"].upper())
`;
const MISUSED = `${USED}
number: int = call["session_uuid"]
print(call["session"])
client.sessions.dial(from_="+15550100", to="+15550199", ring_timeout_sec=30, machine_detection={"timeout": 2000})
client.sessions.dial(from_="+15550100", to="+15550199", ring_timeout_sec=30, sip_headers={"X-Tag": 1})
if fields["event"] == "session.held":
    print(fields["duration_seconds"])
`;

test.skipIf(!hasPython)('Python finds every name that the types mention, and which fields an event always has', () => {
  const { stdout, stderr } = spawnSync('python3', ['-W', 'error', '-B', '-c', READ], {
    env: { PATH: process.env.PATH, PYTHONPATH: SDK },
    encoding: 'utf8',
  });
  expect([stdout, stderr]).toEqual(['False True\nTrue\n', '']);
});

describe.skipIf(!hasMypy)('mypy', () => {
  /** What mypy finds in a program, without its place in the file and the name of its rule, which moves. */
  const found = (...programs: readonly string[]): readonly string[] => {
    const folder = mkdtempSync(join(tmpdir(), 'sidetone-mypy-'));
    const paths = programs.map((program, at) => {
      const path = join(folder, `program${at}.py`);
      writeFileSync(path, program);
      return path;
    });
    const { stdout, stderr } = spawnSync('mypy', ['--strict', '--ignore-missing-imports', '--cache-dir', folder, ...paths], {
      env: { PATH: process.env.PATH, MYPYPATH: SDK },
      encoding: 'utf8',
    });
    rmSync(folder, { recursive: true });
    expect(stderr).toBe('');
    return stdout
      .trim()
      .split('\n')
      .map((line) => line.replace(/^\S*?program(\d)\.py:\d+: /, '$1: ').replace(/ {2}\[.*\]$/, ''));
  };

  test('takes what requests, answers and events have, and nothing else', () => {
    const errors = found(USED, MISUSED);
    expect(errors.filter((line) => line.startsWith('0'))).toEqual([]);
    expect(errors.slice(0, -1)).toEqual([
      '1: error: Incompatible types in assignment (expression has type "str", variable has type "int")',
      '1: error: TypedDict "SessionOperation" has no key "session"',
      '1: error: Argument "machine_detection" to "dial" of "Sessions" has incompatible type "Dict[str, int]"; expected "Optional[DialMachineDetection]"',
      '1: error: Dict entry 0 has incompatible type "str": "int"; expected "str": "str"',
      '1: error: TypedDict "SessionHeldEvent" has no key "duration_seconds"',
    ]);
  }, 60_000);
});
