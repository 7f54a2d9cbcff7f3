"""The room Testing: plans are made, run, stopped, continued and opened, and the page's numbers are those of the records."""

import json
import math
import os
import pathlib
import signal
import statistics
import tempfile

import harness

#: Student's t at 97.5 % by degrees of freedom.
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}

PLAN = """name = "long/one"
title = "Many small files"
link = "rate=10M,delay=5ms,queue=1bdp"
repeats = 400
cap = "60s"

[[flow]]
name = "file"
profile = "auto"
size = "4MB"

[[sweep]]
name = "loss"
vary = "link.loss"
values = ["5%"]
"""


def digits(number):
    """Returns a number as the page shows it."""
    return float(f"{number:.4g}")


def records(lab, name):
    return [json.loads(line) for line in (lab.directory / name / "results.jsonl").read_text().splitlines()]


def wait(page, condition, argument=None):
    """Waits for a condition in the page, whose policy allows no evaluation."""
    harness.until(condition, lambda: page.evaluate(condition, argument))


def wait_stage(page, stage):
    page.wait_for_selector(f'#run-stage[data-stage="{stage}"]')


#: Seconds within which a run of a few cases over links ends, each of which may be tried three times.
LONG = 300
#: The number of further attempts at cases for which this machine was too busy.
GOES = 4


def wait_ended(page, before):
    """Waits for the end of a run over links with more than this number of records; returns whether every case has a valid run."""
    ended = r"""(before) => {
        const stage = document.querySelector("#run-stage");
        const records = Number(/(\d+) records? in/.exec(stage.textContent)?.[1]);
        return records > before && ["done", "failed"].includes(stage.dataset.stage);
    }"""
    harness.until("the end of the run", lambda: page.evaluate(ended, before), LONG)
    if page.get_attribute("#run-stage", "data-stage") == "done":
        return True
    assert "cases without a valid run" in page.inner_text("#run-stage"), page.inner_text("#run")
    return False


def finished(all, peer):
    """Returns the seconds of a peer's cases, and the number of other endings: a repeated failure does not count."""
    valid = [record for record in all if not record["verdict"]["reasons"] and record["case"]["peer"] == peer]
    last = {record["id"]: record["ending"] for record in valid}.values()
    seconds = [ending["seconds"] for ending in last if ending["end"] == "finished"]
    return seconds, len(last) - len(seconds)


#: The directories of runs' files, in addition to the temporary directory.
MEMORY = pathlib.Path("/dev/shm")


def of_runs(directory):
    """Returns the unlocked directories of runs."""
    locks = pathlib.Path("/proc/locks").read_text()
    found = set()
    for run in directory.glob("downpour-lab-*"):
        try:
            lock = (run / "lock").stat()
        except FileNotFoundError:
            continue
        device = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}"
        if f" {device}:{lock.st_ino} " not in locks:
            found.add(run)
    return found


class Testing(harness.Case):
    def start(self, page, text):
        page.fill("#plan-text", text)
        page.wait_for_selector("#plan-check.good")
        page.click("text=Start")

    def test_three_systems_over_loss(self):
        lab = self.lab()
        page = self.view(lab, "testing")
        page.fill("#plan-name", "my/three")
        page.fill("#plan-values", "0%, 2%, 5%")
        page.fill("#plan-size", "200KB")
        page.fill("#plan-repeats", "3")
        wait(page, "document.querySelector('#plan-check.good')?.textContent.startsWith('27 runs')")
        self.shot(page, "testing-form")
        page.click("text=Start")
        wait_stage(page, "done")
        all = records(lab, "lab-results/my/three")
        self.assertEqual(len(all), 27)
        systems, points = ["auto", "auto, fixed rate", "arq"], ["0%", "2%", "5%"]
        wait(page, "document.querySelectorAll('.sweep tbody td .runs').length === 9")
        rows = page.query_selector_all(".sweep tbody tr")
        self.assertEqual([row.query_selector("th").inner_text() for row in rows], systems)
        for row, system in zip(rows, systems):
            for cell, point in zip(row.query_selector_all("td"), points):
                seconds = [
                    record["flows"][0]["seconds"]
                    for record in all
                    if record["case"]["series"] == system and record["case"]["point"] == point
                ]
                self.assertEqual(len(seconds), 3)
                of = lambda kind: float(cell.query_selector(f".{kind}").inner_text())
                deviation = statistics.stdev(seconds)
                self.assertEqual(of("mean"), digits(statistics.fmean(seconds)), (system, point))
                self.assertAlmostEqual(of("deviation"), deviation, delta=1e-3 * deviation + 1e-9)
                half = T[2] * deviation / math.sqrt(3)
                self.assertAlmostEqual(of("interval"), half, delta=1e-3 * half + 1e-9)
                self.assertEqual(of("median"), digits(statistics.median(seconds)))
                self.assertEqual(cell.query_selector(".runs").inner_text(), "3/3")
        self.shot(page, "testing-run")
        # Two more repeats: the same table with as many runs more.
        page.fill("#run-more", "2")
        page.click("#run button:text-is('Add')")
        wait(page, "[...document.querySelectorAll('.sweep .runs')].every((n) => n.textContent === '5/5')")
        self.assertEqual(len(records(lab, "lab-results/my/three")), 45)
        # From a number to its records, by the keyboard.
        page.focus(".sweep tbody tr:nth-child(3) td:nth-child(4) button")
        page.keyboard.press("Enter")
        page.wait_for_selector(".behind li")
        self.assertEqual(len(page.query_selector_all(".behind li")), 5)
        self.assertIn("arq, 5%", page.inner_text(".behind h4"))
        page.click(".behind li:first-child summary")
        wait(page, "document.querySelector('.behind li pre').textContent.includes('packets_sent')")
        whole = json.loads(page.inner_text(".behind li:first-child pre"))
        self.assertIn((whole["id"], whole["date"]), [(record["id"], record["date"]) for record in records(lab, "lab-results/my/three")])
        self.assertEqual((whole["case"]["series"], whole["case"]["point"]), ("arq", "5%"))

    def test_stop_reload_and_continue(self):
        lab = self.lab()
        page = self.view(lab, "testing")
        self.start(page, PLAN)
        wait_stage(page, "running")
        wait(page, r"Number(/(\d+) of 400 cases/.exec(document.querySelector('#run-stage').textContent)?.[1]) >= 3")
        page.reload()
        wait_stage(page, "running")
        other = self.view(lab, "testing/lab-results/long/one", width=400, dark=True)
        wait_stage(other, "running")
        page.click("#run button:text-is('Stop')")
        wait_stage(page, "partial")
        wait_stage(other, "partial")
        self.shot(other, "testing-400-dark")
        before = records(lab, "lab-results/long/one")
        self.assertLess(len(before), 400)
        page.fill("#run-jobs", "2")
        page.click("#run button:text-is('Continue')")
        wait_stage(page, "done")
        after = records(lab, "lab-results/long/one")
        self.assertEqual(after[: len(before)], before)
        self.assertEqual(len({record["id"] for record in after}), 400)
        self.assertEqual(len(after), 400)

    def test_a_run_outlives_its_lab_and_is_stopped_by_the_next(self):
        self.expected.append("ERR_")
        lab = self.lab()
        page = self.view(lab, "testing")
        self.start(page, PLAN.replace("400", "5000"))
        wait_stage(page, "running")
        wait(page, r"Number(/(\d+) records? in/.exec(document.querySelector('#run-stage').textContent)?.[1]) >= 3")
        lab.kill()
        page.wait_for_selector("#lost:not([hidden])")
        before = records(lab, "lab-results/long/one")
        next = self.lab(directory=lab.directory)
        page = self.view(next, "testing")
        page.click("#plan-running a:text-is('lab-results/long/one')")
        wait_stage(page, "running")
        self.assertRegex(page.inner_text("#run-stage"), r"^Running in process \d+, which this lab did not start")
        self.assertTrue(page.is_hidden("#run button:text-is('Continue')"))
        self.shot(page, "testing-outlived")
        page.click("#run button:text-is('Stop')")
        wait_stage(page, "partial")
        after = records(lab, "lab-results/long/one")
        self.assertEqual(after[: len(before)], before)
        self.assertTrue(len(before) < len(after) < 5000, (len(before), len(after)))
        # This lab can continue it.
        page.click("#run button:text-is('Continue')")
        wait_stage(page, "running")
        page.click("#run button:text-is('Stop')")
        wait_stage(page, "partial")
        all = records(lab, "lab-results/long/one")
        self.assertEqual(len({record["id"] for record in all}), len(all))

    def test_killed_run_corrupt_record_and_missing_directory(self):
        self.expected += ["409 (Conflict)", "500 (Internal Server Error)"]
        lab = self.lab()
        (lab.directory / "lab-results").write_text("no directory")
        page = self.view(lab, "testing")
        self.start(page, PLAN)
        page.wait_for_selector("#plan-check.bad")
        self.assertRegex(page.inner_text("#plan-check"), r"^cannot write results to lab-results: .*; start downpour-lab web in a writable directory$")
        (lab.directory / "lab-results").unlink()
        # Two browsers at once: one of them starts it.
        other = self.view(lab, "testing")
        for each in (page, other):
            each.fill("#plan-text", PLAN + "# once more\n")
            each.wait_for_selector("#plan-check.good")
        for each in (page, other):
            each.evaluate("setTimeout(() => [...document.querySelectorAll('#plan button')].find((button) => button.textContent === 'Start').click(), 100)")
        harness.until("one refused", lambda: [each.query_selector("#plan-check.bad") for each in (page, other)].count(None) == 1)
        if page.query_selector("#plan-check.bad"):
            page = other
        name = "lab-results/long/one"
        wait(page, r"Number(/(\d+) of 400 cases/.exec(document.querySelector('#run-stage')?.textContent)?.[1]) >= 3")
        # A run with unreadable results can still be stopped.
        results = lab.directory / name / "results.jsonl"
        with results.open("a") as file:
            file.write("garbage\n")
        page.wait_for_selector("#run p.bad:has-text('results.jsonl:')")
        page.click("#run button:text-is('Stop')")
        harness.until("the run ends", lambda: not lab.children())
        results.write_text("".join(line for line in results.read_text().splitlines(keepends=True) if line != "garbage\n"))
        wait_stage(page, "partial")
        page.click("#run button:text-is('Continue')")
        wait_stage(page, "running")
        (run,) = harness.until("it runs", lab.children)
        os.kill(run, signal.SIGKILL)
        wait_stage(page, "failed")
        self.assertTrue(page.inner_text("#run-stage").startswith("Killed. Stored records are kept"))
        whole = (lab.directory / name / "results.jsonl").read_text()
        lines = whole.splitlines(keepends=True)
        (lab.directory / name / "results.jsonl").write_text("".join([*lines[:1], "garbage\n", *lines[1:]]))
        page.wait_for_selector("#run p.bad:has-text('results.jsonl:2: ')")
        self.assertIn("correct or remove the line", page.inner_text("#run"))
        # Another program has changed the records meanwhile.
        (lab.directory / name / "results.jsonl").write_text(whole)
        wait_stage(page, "partial")
        page.click("#run button:text-is('Continue')")
        wait_stage(page, "running")
        page.click("#run button:text-is('Stop')")
        wait_stage(page, "partial")
        all = records(lab, name)
        self.assertEqual(all[: len(lines)], [json.loads(line) for line in lines])
        self.assertEqual(len({record["id"] for record in all}), len(all))

    def test_errors_of_the_plan_readers_are_shown(self):
        self.expected.append("400 (Bad Request)")
        page = self.view(self.lab(), "testing")
        page.fill("#plan-text", PLAN.replace("5%", "5 apples"))
        page.wait_for_selector("#plan-check.bad")
        self.assertRegex(page.inner_text("#plan-check"), r"^plan\.toml:12: .*cannot read loss=5 apples")

    def test_a_plan_is_saved(self):
        page = self.view(self.lab(), "testing")
        page.fill("#plan-text", PLAN)
        with page.expect_download() as download:
            page.click("text=Save as a file")
        self.assertEqual(open(download.value.path()).read(), PLAN)

    def test_programs_over_links(self):
        page = self.view(self.lab(), "testing")
        page.check("input[value=links]")
        wait(page, "document.querySelector('#plan-text').value.includes('peers = [')")
        boxes = page.query_selector_all("#plan-systems label")
        self.assertGreater(len(boxes), 20)
        for box in boxes:
            self.assertEqual("needs " in box.inner_text(), box.query_selector("input").is_disabled(), box.inner_text())
        page.wait_for_selector("#plan-check.good")
        self.assertRegex(page.inner_text("#plan-check"), r"^\d+ runs, at least [\d.]+ .+, at most [\d.]+ .+, if every run lasts to its cap\.$")
        self.shot(page, "testing-links")

    def test_real_programs_are_run_stopped_and_continued(self):
        """downpour, the kernel's TCP and a copier over emulated links, whose numbers are those of the records."""
        peers = ["tcp-cubic", "downpour-auto", "scp-cubic"]
        scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        existing = of_runs(MEMORY)
        lab = self.lab(environment={"TMPDIR": str(scratch)})
        page = self.view(lab, "testing")
        page.check("input[value=links]")
        wait(page, "document.querySelector('#plan-text').value.includes('peers = [')")
        for peer in peers:
            page.check(f"#plan-systems input[value={peer}]")
        for box in page.query_selector_all("#plan-systems input:checked"):
            if box.get_attribute("value") not in peers:
                box.uncheck()
        for field, value in [("name", "links/three"), ("link-rate", "10M"), ("link-delay", "5ms"), ("values", "5%"), ("size", "200KB"), ("repeats", "3"), ("cap", "60s")]:
            page.fill(f"#plan-{field}", value)
        wait(page, "document.querySelector('#plan-check.good')?.textContent.startsWith('9 runs')")
        page.click("text=Start")
        name = "lab-results/links/three"
        page.wait_for_selector("#last-runs li")
        page.click("#run button:text-is('Stop')")
        wait_stage(page, "partial")
        before = records(lab, name)
        self.assertTrue(0 < len(before) < 9, len(before))
        self.assertEqual(lab.children(), [])
        running = [process.name for process in pathlib.Path("/proc").glob("[0-9]*") if self.is_in(process, lab.directory)]
        self.assertEqual(running, [str(lab.pid)], "only the lab is left")
        self.assertEqual((list(scratch.glob("downpour-lab-*")), of_runs(MEMORY) - existing), ([], set()))
        all = self.run_to_the_end(lab, page, name, "Continue", peers)
        self.assertEqual(all[: len(before)], before)
        self.numbers_are_those_of(page, all, peers, 3)
        page.fill("#run-more", "1")
        all = self.run_to_the_end(lab, page, name, "Add", peers)
        self.assertIn("of 12 cases", page.inner_text("#run-stage"))
        self.numbers_are_those_of(page, all, peers, 4)
        self.shot(page, "testing-links-run")

    @staticmethod
    def is_in(process, directory):
        try:
            return (process / "cwd").readlink() == directory
        except OSError:
            return False

    def run_to_the_end(self, lab, page, name, first, peers):
        """Continues until every case has a valid run, or at least one of each peer; returns all records."""
        button = first
        for _ in range(GOES):
            before = len(records(lab, name))
            page.click(f"#run button:text-is('{button}')")
            is_whole = wait_ended(page, before)
            all = records(lab, name)
            lacking = [peer for peer in peers if len(finished(all, peer)[0]) == 0]
            if is_whole or not lacking:
                break
            button = "Continue"
        self.assertEqual(lacking, [], f"this machine was too busy for a valid run of these, {GOES} times: no comparison is possible")
        return all

    def numbers_are_those_of(self, page, all, peers, repeats):
        """Asserts that the table has the records' numbers, and each run in the list its verdict."""
        for peer in peers:
            seconds, others = finished(all, peer)
            wait(page, f"document.querySelector('.sweep tbody tr:nth-child({peers.index(peer) + 1}) .runs')?.textContent === '{len(seconds)}/{repeats}'")
            row = page.query_selector(f".sweep tbody tr:nth-child({peers.index(peer) + 1})")
            self.assertEqual(row.query_selector("th").inner_text(), peer)
            of = lambda kind: float(row.query_selector(f".{kind}").inner_text())
            self.assertEqual(of("mean"), digits(statistics.fmean(seconds)), peer)
            if len(seconds) > 1:
                deviation = statistics.stdev(seconds)
                half = T[len(seconds) - 1] * deviation / math.sqrt(len(seconds))
                self.assertAlmostEqual(of("deviation"), deviation, delta=1e-3 * deviation + 1e-9)
                self.assertAlmostEqual(of("interval"), half, delta=1e-3 * half + 1e-9)
            # In the median unfinished runs are the longest.
            median = statistics.median(seconds + [math.inf] * others)
            if median < math.inf:
                self.assertEqual(of("median"), digits(median), peer)
        shown = [line.inner_text() for line in page.query_selector_all("#last-runs summary:has(span)")]
        self.assertEqual(len(shown), len(all))
        for line, record in zip(shown, reversed(all)):
            reasons = record["verdict"]["reasons"]
            self.assertTrue(line.startswith(f"{record['case']['peer']}, seed {record['case']['seed']}: "), line)
            self.assertTrue(line.endswith(f"invalid: {'; '.join(reasons)}" if reasons else "valid"), line)

    def test_a_stored_experiment_is_opened(self):
        experiments = harness.ROOT / "experiments"
        lab = self.lab("--experiments", experiments)
        page = self.view(lab, "testing")
        page.fill("#plan-open", "experiments/profiles/table")
        page.click("button:text-is('Open')")
        wait_stage(page, "done")
        all = harness.stored_records(experiments / "profiles/table")
        seconds = [
            record["flows"][0]["seconds"]
            for record in all
            if record["case"]["series"] == "lt-tcp" and record["case"]["point"] == "5% / 0%"
        ]
        row = next(row for row in page.query_selector_all(".sweep:first-child tbody tr") if row.query_selector("th").inner_text() == "lt-tcp")
        cell = row.query_selector_all("td")[2]
        self.assertEqual(float(cell.query_selector(".mean").inner_text()), digits(statistics.fmean(seconds)))
        self.assertTrue(page.is_hidden("text=Continue"), "stored experiments are read-only")
        page.click("text=Edit its plan")
        wait(page, "document.querySelector('#plan-text').value.includes('profiles/table')")
        wait(page, "/\\d+ runs/.test(document.querySelector('#plan-check').textContent)")
        self.shot(page, "testing-stored")


if __name__ == "__main__":
    harness.main()
