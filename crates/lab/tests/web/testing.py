"""The room Testing: plans are made, run, stopped, gone on with and opened, and the page's numbers are those of the records."""

import json
import math
import statistics

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
    """A number as the page shows it."""
    return float(f"{number:.4g}")


def records(lab, name):
    return [json.loads(line) for line in (lab.folder / name / "results.jsonl").read_text().splitlines()]


def wait(page, condition, argument=None):
    """Waits for a condition in the page, whose policy lets it evaluate nothing itself."""
    harness.until(condition, lambda: page.evaluate(condition, argument))


def wait_stage(page, stage):
    page.wait_for_selector(f'#run-stage[data-stage="{stage}"]')


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
        systems, points = ["auto", "auto, told", "arq"], ["0%", "2%", "5%"]
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

    def test_stop_reload_and_go_on(self):
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
        page.click("#run button:text-is('Go on')")
        wait_stage(page, "done")
        after = records(lab, "lab-results/long/one")
        self.assertEqual(after[: len(before)], before)
        self.assertEqual(len({record["id"] for record in after}), 400)
        self.assertEqual(len(after), 400)

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
        self.assertRegex(page.inner_text("#plan-check"), r"at most|runs")
        self.shot(page, "testing-links")

    def test_a_stored_experiment_is_opened(self):
        experiments = harness.ROOT / "experiments"
        lab = self.lab("--experiments", experiments)
        page = self.view(lab, "testing")
        page.fill("#plan-open", "experiments/profiles/table")
        page.click("button:text-is('Open')")
        wait_stage(page, "done")
        all = [json.loads(line) for line in (experiments / "profiles/table/results.jsonl").read_text().splitlines()]
        seconds = [
            record["flows"][0]["seconds"]
            for record in all
            if record["case"]["series"] == "lt-tcp" and record["case"]["point"] == "5% / 0%"
        ]
        row = next(row for row in page.query_selector_all(".sweep:first-child tbody tr") if row.query_selector("th").inner_text() == "lt-tcp")
        cell = row.query_selector_all("td")[2]
        self.assertEqual(float(cell.query_selector(".mean").inner_text()), digits(statistics.fmean(seconds)))
        self.assertTrue(page.is_hidden("text=Go on"), "stored experiments stay as they are")
        page.click("text=Edit its plan")
        wait(page, "document.querySelector('#plan-text').value.includes('profiles/table')")
        wait(page, "/\\d+ runs/.test(document.querySelector('#plan-check').textContent)")
        self.shot(page, "testing-stored")


if __name__ == "__main__":
    harness.main()
