#!/usr/bin/env python3
"""Places a call by a client that openapi-python-client makes from the platform's OpenAPI document.

    sdk/try-python-generator.py http://127.0.0.1:8080 APP_UUID API_KEY FROM TO

The generator comes from PyPI, into a virtual environment of its own that is removed afterwards. Exit 0: the call was
admitted, and its Session is printed. 1: it was not. 2: PyPI cannot be reached, or an argument is missing.
"""
import pathlib
import subprocess
import sys
import tempfile
import urllib.request
import venv

GENERATOR = "openapi-python-client>=0.21,<1"
DIAL = """
import importlib, inspect, sys, typing
base_url, app, key, caller, callee = sys.argv[1:]
client = importlib.import_module("generated.client").AuthenticatedClient(base_url=base_url, token=f"{app}:{key}")
dial = importlib.import_module("generated.api.sessions.dial")
hints = typing.get_type_hints(dial.sync_detailed)
body = hints["body"].from_dict({"from": caller, "to": callee, "ring_timeout_sec": 30})
answer = dial.sync_detailed(client=client, body=body)
if answer.status_code != 202:
    sys.exit(f"the dial was answered {int(answer.status_code)}: {answer.content.decode()}")
print(answer.parsed.session_uuid)
"""


def run(*command: object, cwd: pathlib.Path) -> "subprocess.CompletedProcess[str]":
    """Runs a command and keeps what it prints."""
    return subprocess.run([str(each) for each in command], cwd=cwd, capture_output=True, text=True, timeout=300)


def main(arguments: "list[str]") -> int:
    if len(arguments) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        installed = run(python, "-m", "pip", "install", "--quiet", "--retries", "0", GENERATOR, cwd=folder)
        if installed.returncode != 0:
            print("PyPI cannot be reached, so the generator is not there", file=sys.stderr)
            return 2
        with urllib.request.urlopen(f"{arguments[0]}/openapi.json", timeout=10) as document:
            (folder / "openapi.json").write_bytes(document.read())
        generator = folder / "venv" / "bin" / "openapi-python-client"
        made = run(generator, "generate", "--path", "openapi.json", "--meta", "none", "--output-path", "generated", cwd=folder)
        if made.returncode != 0:
            print(made.stdout + made.stderr, file=sys.stderr)
            return 1
        dialled = run(python, "-c", DIAL, *arguments, cwd=folder)
        print(dialled.stdout + dialled.stderr, end="")
        return 0 if dialled.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
