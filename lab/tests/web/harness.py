"""The common parts of the tests of the lab's page, and the program that runs them.

    python3 -B harness.py [MODULE[.CLASS[.TEST]]...]

runs every test in this directory, or those that are named, prints their count and fails if there was none. `cargo xtask test-web`
builds the programs and calls it. A test is a `unittest` in a file beside this one:

    import harness

    class Live(harness.Case):
        def test_something(self):
            lab = self.lab("--follow", "run.qlog")      # a `downpour-lab web` in a temporary directory
            page = self.view(lab, "live", width=400, dark=True)
            self.shot(page, "live-400-dark")            # into $WEB_SHOTS, if that is set

    if __name__ == "__main__":
        harness.main()

A case fails, whatever else it asserts, if a page logs an error, throws one, or asks another host for anything.
"""

import contextlib
import importlib
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from urllib.parse import urlsplit

import zstandard
from playwright.sync_api import sync_playwright

HERE = pathlib.Path(__file__).resolve().parent
#: The directory of the lab.
ROOT = HERE.parents[1]
#: The directory of the programs.
PROGRAMS = pathlib.Path(os.environ.get("WEB_PROGRAMS", ROOT.parent / "target" / "debug"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
#: Directory for pictures of the page.
SHOTS = os.environ.get("WEB_SHOTS")
#: Seconds within which anything has to happen: a bound on a hang, far above the need of a busy machine.
PATIENCE = 60


def program(name):
    """Returns the path of one of the programs under test."""
    path = PROGRAMS / name
    if not path.is_file():
        raise FileNotFoundError(f"{path}: build it, cargo build -p downpour-cli, and cargo build in lab")
    return path


def stored_records(directory):
    """Returns the packed records of a stored experiment."""
    with zstandard.open(directory / "results.jsonl.zst", "rt") as lines:
        return [json.loads(line) for line in lines]


def until(what, condition, within=PATIENCE):
    """Waits until `condition()` is true and returns what it returned; `what` is for the message otherwise."""
    end = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {within} s: {what}")
        time.sleep(0.02)
    return found


class Lab:
    """A `downpour-lab web` with these arguments, in a directory of its own."""

    def __init__(self, *arguments, directory=None, environment=None):
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="web-test-"))
        self._made = directory is None
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program("downpour-lab"), "web", *map(str, arguments)],
            cwd=self.directory,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in self.process.stdout], daemon=True).start()
        try:
            #: The address with the secret; ends with a slash.
            self.url = lines.get(timeout=PATIENCE).strip().split("#")[0]
        except queue.Empty:
            self.kill()
            raise AssertionError(f"downpour-lab web printed no address: {self.stderr()}") from None
        parts = urlsplit(self.url)
        self.port = parts.port
        self.secret = parts.path.strip("/")

    @property
    def pid(self):
        return self.process.pid

    def stderr(self):
        """Returns its stderr so far."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def memory(self):
        """Returns its resident memory in bytes."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("it has ended")

    def children(self):
        """Returns its running child processes."""
        tasks = pathlib.Path(f"/proc/{self.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    def stop(self):
        """Stops it as Ctrl-C does; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self._wait()

    def kill(self):
        """Kills it, like a crash."""
        self.process.kill()
        return self._wait()

    def _wait(self):
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code

    def close(self):
        if self.process.poll() is None:
            self.kill()
        # A run outlives a lab that was killed.
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (process / "cwd").readlink() == self.directory:
                    os.kill(int(process.name), signal.SIGKILL)
        self._errors.close()
        if self._made:
            shutil.rmtree(self.directory, ignore_errors=True)


class _Browser:
    """One chromium for all tests of this process."""

    playwright = None
    browser = None

    @classmethod
    def get(cls):
        if cls.browser is None:
            cls.playwright = sync_playwright().start()
            cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        return cls.browser

    @classmethod
    def close(cls):
        if cls.browser is not None:
            cls.browser.close()
            cls.playwright.stop()
            cls.browser = cls.playwright = None


class Case(unittest.TestCase):
    """A test with a lab and viewers of its page."""

    def setUp(self):
        #: Errors of pages.
        self.problems = []
        #: Texts in errors that this test provokes, such as a lost connection.
        self.expected = []
        self.addCleanup(self._judge)

    def _judge(self):
        found = [problem for problem in self.problems if not any(part in problem for part in self.expected)]
        self.assertEqual(found, [], "errors of the page")

    def lab(self, *arguments, directory=None, environment=None):
        """Starts a lab that ends with the test."""
        lab = Lab(*arguments, directory=directory, environment=environment)
        self.addCleanup(lab.close)
        return lab

    def view(self, lab, room="", width=1280, height=900, dark=False, beside=None, **options):
        """Opens the page at a room, as a viewer of its own or in another tab `beside` a page. `options` are those of a context of
        Playwright."""
        context = beside.context if beside else _Browser.get().new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", **options
        )
        if not beside:
            self.addCleanup(context.close)
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        own = f"http://127.0.0.1:{lab.port}/{lab.secret}/"

        def asked(request):
            if not request.url.startswith((own, "data:", "blob:")):
                self.problems.append(f"it asks {request.url}")

        def said(message):
            if message.type in ("error", "warning"):
                self.problems.append(f"console: {message.text}")

        page.on("request", asked)
        page.on("console", said)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.goto(f"{lab.url}#{room}" if room else lab.url)
        return page

    def shot(self, page, name, **options):
        """Takes a picture of the page, if pictures are wanted."""
        if SHOTS:
            pathlib.Path(SHOTS).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True, **options)


def _suite(names):
    modules = sorted(file.stem for file in HERE.glob("*.py") if file.stem != "harness")
    loader = unittest.defaultTestLoader
    if names:
        return loader.loadTestsFromNames(names)
    return unittest.TestSuite(loader.loadTestsFromModule(importlib.import_module(name)) for name in modules)


def run(names):
    """Runs tests, prints their count; returns the exit code. Skipped tests and tests that did not run do not count as passed."""
    sys.path.insert(0, str(HERE))
    try:
        result = unittest.TextTestRunner(verbosity=2).run(_suite(names))
    finally:
        _Browser.close()
    # A test counts once, whatever the number of its failed parts.
    failed = [getattr(test, "test_case", test) for test, _ in result.failures + result.errors]
    wrong = len({test.id() for test in failed + result.unexpectedSuccesses})
    passed = result.testsRun - wrong - len(result.skipped)
    sys.stderr.flush()
    if result.skipped:
        print(f"{len(result.skipped)} skipped: not allowed")
    if result.testsRun == 0:
        print("no tests")
    print(f"{passed} passed, {wrong} failed", flush=True)
    return 0 if passed > 0 and passed == result.testsRun else 1


def main():
    """Runs the tests of the file that calls it."""
    names = [pathlib.Path(sys.argv[0]).stem, *sys.argv[1:]]
    sys.exit(run(names if len(names) == 1 else [f"{names[0]}.{name}" for name in names[1:]]))


if __name__ == "__main__":
    # As a module, so that the tests import this very one.
    import harness

    sys.exit(harness.run(sys.argv[1:]))
