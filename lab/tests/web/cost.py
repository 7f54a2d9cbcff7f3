"""The cost of the page during a run and during a demonstration: processor time of the server, with no viewer, one and three.

    WEB_PROGRAMS=target/release python3 -B cost.py [SECONDS]

prints a line for each. No test asserts it, since it depends on other load. A browser's own time is not counted; it may be
on another machine.
"""

import json
import os
import pathlib
import sys
import time
import urllib.request

import harness

#: Tens of thousands of short runs, the most that the page allows: 4 systems at 6 points.
SIMULATED = """name = "cost/simulated"
title = "Many cases"
link = "rate=10M,delay=5ms,queue=1bdp"
repeats = 2000
cap = "60s"
[[flow]]
name = "file"
profile = "auto"
size = "4MB"
""" + "".join(
    f'[[series]]\nname = "{name}"\nset = {{ "file.profile" = "{name}" }}\n' for name in ("auto", "arq", "linux-tcp", "tornado-transfer")
) + """[[sweep]]
name = "loss"
vary = "link.loss"
values = ["0%", "1%", "2%", "3%", "4%", "5%"]
"""
LINKS = """name = "cost/links"
title = "Real programs"
link = "rate=10M,delay=5ms,queue=1bdp,loss=1%"
repeats = 1000
cap = "60s"
size = "200KB"
peers = ["tcp-cubic", "downpour-auto"]
[[sweep]]
name = "loss"
vary = "loss"
values = ["0%", "5%"]
"""


def spent(pid):
    """Returns the processor seconds of a process, without its children."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(lab, path, **asked):
    request = urllib.request.Request(f"{lab.url}testing/{path}", json.dumps(asked).encode(), {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))


def measure(case, seconds):
    for text in (SIMULATED, LINKS):
        lab = case.lab()
        name = ask(lab, "start", text=text)["name"]
        records = lab.directory / name / "results.jsonl"
        harness.until("records", lambda: records.is_file() and len(records.read_bytes().splitlines()) >= 3)
        viewers = 0
        for wanted in (0, 1, 3):
            while viewers < wanted:
                case.view(lab, f"testing/{name}").wait_for_selector("#last-runs li")
                viewers += 1
            begun, before, had = time.monotonic(), spent(lab.pid), len(records.read_bytes().splitlines())
            time.sleep(seconds)
            share = (spent(lab.pid) - before) / (time.monotonic() - begun)
            all = len(records.read_bytes().splitlines())
            print(f"{name.split('/')[-1]}, {viewers} viewers, {had} to {all} records: {share:.2%} of a core, {lab.memory() >> 20} MiB", flush=True)
        ask(lab, "stop", name=name)


def demonstrate(case, seconds):
    """Four systems at 5 Mbit/s; over simulated links the server is also the one that simulates them."""
    for emulated in ("false", "true"):
        lab = case.lab()
        width, height = 1024, 768
        asked = f"systems=auto,linux-tcp,tornado-transfer,rc-udp&width={width}&height={height}&seed=1&loss=5&delay=40&rate=5&speed=1&emulated={emulated}"
        for viewers in (0, 1, 3):
            request = urllib.request.Request(f"{lab.url}demonstration/runs?{asked}", os.urandom(width * height * 3))
            run = json.load(urllib.request.urlopen(request))["id"]
            pages = [case.view(lab, f"demonstration/{run}") for _ in range(viewers)]
            for page in pages:
                page.wait_for_selector(".system")
            begun, before = time.monotonic(), spent(lab.pid)
            time.sleep(seconds)
            share = (spent(lab.pid) - before) / (time.monotonic() - begun)
            print(f"demonstration, emulated: {emulated}, {viewers} viewers: {share:.2%} of a core, {lab.memory() >> 20} MiB", flush=True)
            urllib.request.urlopen(urllib.request.Request(f"{lab.url}demonstration/runs/{run}/stop", b""))
            for page in pages:
                page.close()


if __name__ == "__main__":
    case = harness.Case()
    try:
        seconds = float(sys.argv[1]) if sys.argv[1:] else 20
        measure(case, seconds)
        demonstrate(case, seconds)
    finally:
        case.doCleanups()
        harness._Browser.close()
