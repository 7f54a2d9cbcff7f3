"""The room Results: from verdicts and points of pictures to the records behind them."""

import json

import harness

EXPERIMENTS = harness.ROOT / "experiments"


def records(name):
    return harness.stored_records(EXPERIMENTS / name)


def wait(page, condition, argument=None):
    """Waits for a condition in the page, whose policy allows no evaluation."""
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

    def test_filter_and_order_are_in_the_address(self):
        page = self.view_results("results")
        page.wait_for_selector("#results-all tbody tr")
        table = page.locator("#results-all > .wide")
        head = table.get_by_role("columnheader", name="reproduced").first
        counts = lambda kind: [int(text or 0) for text in table.locator(f"tbody td:nth-child({kind})").all_inner_texts()]
        self.assertIsNone(head.get_attribute("aria-sort"))
        given = table.locator("tbody td:first-child a").all_inner_texts()
        page.select_option("#results-verdict", "not")
        files = EXPERIMENTS.glob("*/*/verdict.txt")
        expected = {str(file.parent.relative_to(EXPERIMENTS.parent)) for file in files if "Verdict:  not reproduced" in file.read_text()}
        self.assertEqual(set(table.locator("tbody td:first-child a").all_inner_texts()), expected)
        self.assertGreater(len(expected), 3)
        self.assertLess(len(expected), len(given))
        claims = page.locator("#results-all > div:nth-child(2) tbody td:nth-child(4)").all_inner_texts()
        self.assertEqual(set(claims), {"not reproduced"})
        # Descending, and after a second press ascending, by the keyboard; the focus stays.
        for press, order in [("Enter", "descending"), (" ", "ascending")]:
            head.get_by_role("button").press(press)
            self.assertEqual(head.get_attribute("aria-sort"), order)
            self.assertEqual(counts(3), sorted(counts(3), reverse=order == "descending"))
            self.assertGreater(len(set(counts(3))), 1)
            self.assertEqual(page.evaluate("document.activeElement.textContent"), "reproduced")
        # The address shows the same list, also via an experiment.
        seen = table.inner_text()
        page.reload()
        page.wait_for_selector("#results-all tbody tr")
        self.assertEqual(table.inner_text(), seen)
        table.locator("tbody a").first.click()
        page.click("text=All experiments")
        table.wait_for()
        self.assertEqual(table.inner_text(), seen)
        self.assertEqual(page.url.split("#")[1], "results?verdict=not&sort=reproduced")
        # Numbers in texts are ordered as numbers.
        page.select_option("#results-verdict", "")
        table.get_by_role("button", name="Experiment").click()
        names = table.locator("tbody td:first-child a").all_inner_texts()
        self.assertLess(names.index("experiments/arq/fig9"), names.index("experiments/arq/fig10"))
        self.assertEqual(sorted(names), sorted(given))
        page.click("nav a[href='#results']")
        wait(page, "document.querySelectorAll('#results-all [aria-sort]').length === 0")
        self.assertEqual(table.locator("tbody td:first-child a").all_inner_texts(), given)

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

    def test_unknown_experiment_is_reported(self):
        self.expected.append("404 (Not Found)")
        page = self.view_results("results/experiments/..%2F..%2Fetc")
        page.wait_for_selector("#results-one .bad")
        self.assertIn("unknown plan", page.inner_text("#results-one"))


if __name__ == "__main__":
    harness.main()
