"""The room Results: from verdicts and points of pictures to the records behind them."""

import json

import harness

EXPERIMENTS = harness.ROOT / "experiments"


def records(name):
    return [json.loads(line) for line in (EXPERIMENTS / name / "results.jsonl").read_text().splitlines()]


def wait(page, condition, argument=None):
    """Waits for a condition in the page, whose policy lets it evaluate nothing itself."""
    harness.until(condition, lambda: page.evaluate(condition, argument))


class Results(harness.Case):
    def view_results(self, room, **options):
        return self.view(self.lab("--experiments", EXPERIMENTS), room, **options)

    def test_all_experiments_are_listed_and_filtered(self):
        page = self.view_results("results")
        page.wait_for_selector("#results-all tbody tr")
        names = {str(file.parent.relative_to(EXPERIMENTS)) for file in EXPERIMENTS.glob("*/*/verdict.txt")}
        listed = {link.inner_text().removeprefix("experiments/") for link in page.query_selector_all("#results-all > .wide tbody tr td:first-child a")}
        self.assertLessEqual(names, listed)
        text = (EXPERIMENTS / "arq/fig3/verdict.txt").read_text()
        row = page.query_selector("#results-all > .wide tr:has(a:text-is('experiments/arq/fig3'))")
        self.assertEqual(row.query_selector(".number.reproduced").inner_text(), str(text.count("Verdict:  reproduced")))
        self.assertGreaterEqual(len(page.query_selector_all("#results-all > div:nth-child(2) tbody tr")), 5, "headline claims")
        self.shot(page, "results-list")
        page.fill("#results-filter", "jain longer link")
        wait(page, "document.querySelectorAll('#results-all > .wide tbody tr').length < 5")
        self.assertIn("experiments/arq/fig6", page.inner_text("#results-all > .wide"))

    def test_from_a_point_to_its_records_and_the_command(self):
        page = self.view_results("results/experiments/arq/fig3")
        page.wait_for_selector("svg [data-series]")
        mark = page.query_selector("svg [data-series]")
        # Arrow keys lead from point to point.
        mark.focus()
        page.keyboard.press("ArrowRight")
        said = page.evaluate("document.activeElement.getAttribute('aria-label')")
        page.keyboard.press("Enter")
        page.wait_for_selector(".behind li")
        self.assertIn(said, page.inner_text(".behind h4"))
        x = float(page.evaluate("document.querySelectorAll('svg [data-series]')[1].dataset.x"))
        found = page.query_selector_all(".behind li")
        all = [(record["id"], record["date"]) for record in records("arq/fig3")]
        for item in found:
            item.query_selector("summary").click()
            wait(page, "(item) => item.querySelector('pre').textContent.length > 100", item)
            record = json.loads(item.query_selector("pre").inner_text())
            self.assertIn((record["id"], record["date"]), all)
            self.assertEqual(float(record["case"]["point"].removesuffix("ms")), x)
            command = item.query_selector(".command").inner_text()
            self.assertRegex(command, r"^downpour-lab run '?\S*/arq/fig3\.toml'? --only 'arq/fig3/delay .* seed \d+'$")
            self.assertIn(f"seed {record['case']['seed']}'", command)
        self.shot(page, "results-one")

    def test_a_number_of_a_verdict_leads_to_its_runs(self):
        page = self.view_results("results/experiments/arq/fig3", width=400, dark=True)
        page.wait_for_selector("button.figure")
        figure = page.query_selector("button.figure[title='doc delay 0ms']")
        shown = figure.inner_text()
        figure.click()
        page.wait_for_selector(".behind li")
        self.assertEqual(page.inner_text(".behind h4"), f"Runs of doc delay 0ms = {shown}")
        expected = [
            record
            for record in records("arq/fig3")
            if record["case"]["series"] == "Reno, document" and record["case"]["point"] == "0ms"
        ]
        self.assertEqual(len(page.query_selector_all(".behind li")), len(expected))
        self.assertGreater(len(expected), 0)
        self.shot(page, "results-400-dark")

    def test_what_is_not_there_is_said(self):
        self.expected.append("404 (Not Found)")
        page = self.view_results("results/experiments/..%2F..%2Fetc")
        page.wait_for_selector("#results-one .bad")
        self.assertIn("there is no plan", page.inner_text("#results-one"))


if __name__ == "__main__":
    harness.main()
