"""The room Live: a trace is followed while it is written, zoomed, compared and saved."""

import csv
import io
import json
import pathlib
import random
import re
import stat
import subprocess

import harness

LINK = ["--rate", "20M", "--delay", "20ms", "--queue", "1bdp", "--loss", "2%"]


def simulated(directory, name, run=1):
    """Returns the trace of a simulated transfer, as bytes."""
    file = pathlib.Path(directory) / name
    subprocess.run(
        [harness.program("downpour-lab"), "simulate", *LINK, "--size", "4MB", "--run", str(run), "--qlog", file],
        check=True, stdout=subprocess.DEVNULL,
    )
    return file.read_bytes()


def records(trace):
    """The records of a trace."""
    return [json.loads(record) for record in trace.split(b"\x1e") if record.strip()]


def metrics(trace):
    """The metrics of a trace, moment by moment."""
    return [record for record in records(trace) if record.get("name") == "recovery:metrics_updated"]


class Live(harness.Case):
    def value(self, page, key, column=0):
        """A value of the table, in the trace's unit."""
        cells = page.locator(f'data[data-key="{key}"]')
        return float(cells.nth(column).get_attribute("value"))

    def wait_for_value(self, page, key, value):
        page.wait_for_function(
            """([key, value]) => {
                const shown = Number(document.querySelector(`data[data-key="${key}"]`)?.value);
                return Math.abs(shown - value) <= 1e-9 * Math.abs(value);
            }""",
            arg=[key, value],
        )

    def series(self, lab, *traces):
        """Returns the SVG and the CSV of `downpour-lab series` for traces."""
        out, table = lab.directory / "expected.svg", lab.directory / "expected.csv"
        subprocess.run(
            [harness.program("downpour-lab"), "series", *traces, "--out", out, "--csv", table],
            check=True, cwd=lab.directory, stdout=subprocess.DEVNULL,
        )
        return out.read_text(), table.read_text()

    def saved(self, page, kind):
        """Returns the file behind a link."""
        with page.expect_download() as download:
            page.get_by_role("link", name=kind, exact=True).click()
        return pathlib.Path(download.value.path()).read_text()

    def test_a_trace_is_followed_while_it_is_written(self):
        """In fragments of any length, which split records."""
        lab = self.lab("--follow", "run.qlog")
        whole = simulated(lab.directory, "other.qlog")
        page = self.view(lab, "live")
        page.get_by_text("it does not exist yet: waiting for it").wait_for()
        draw, at = random.Random(7), 0
        with (lab.directory / "run.qlog").open("wb", buffering=0) as file:
            for part in range(1, 7):
                end = len(whole) if part == 6 else len(whole) * part // 6 + draw.randrange(200)
                file.write(whole[at:end])
                at = end
                known = whole[:at] if part == 6 else whole[: whole.rindex(b"\x1e", 0, at)]
                last = metrics(known)[-1]["data"]
                self.wait_for_value(page, "delivered_rate", self.rate(known))
                for key in ("congestion_window", "bytes_in_flight", "loss", "smoothed_rtt", "queue_delay", "open_blocks"):
                    # Readers of decimals differ in the last bit.
                    self.assertAlmostEqual(self.value(page, key) / (last[key] or 1), 1 if last[key] else 0, 12, key)
        page.locator(".live-state").first.filter(has_text="connection ended").wait_for()
        sent = sum(record.get("name") == "downpour:packet_sent" for record in records(whole))
        page.get_by_text(f"{sent:,} packets sent").wait_for()
        blocks = {
            (record["data"]["flow"], record["data"]["block"])
            for record in records(whole) if record.get("name") == "downpour:block_acknowledged"
        }
        page.get_by_text(f"{len(blocks)} blocks done, 0 open").wait_for()
        self.assertEqual(page.get_by_text("first error").count(), 0)
        self.shot(page, "live-followed-1280-light")

    def rate(self, trace):
        """Returns the last delivery rate by its definition: over a round trip, and at least 0.1 s."""
        reports = [(each["time"] * 1e-3, each["data"]["delivered"], each["data"]["smoothed_rtt"]) for each in metrics(trace)]
        since = 0.0
        first = 0
        for count, (time, _, rtt) in enumerate(reports, 1):
            span = max(0.1, rtt * 1e-3)
            while count - first > 1 and reports[first][0] <= time - span:
                since = reports[first][0]
                first += 1
        time = reports[-1][0]
        return sum(each[1] for each in reports[first:]) * 8 / (time - since)

    def test_saved_files_equal_series_output(self):
        lab = self.lab("--follow", "a.qlog", "--follow", "b.qlog")
        simulated(lab.directory, "a.qlog", 1), simulated(lab.directory, "b.qlog", 2)
        page = self.view(lab, "live")
        page.wait_for_function("() => document.querySelectorAll('data[data-key=loss]').length === 2")
        svg, table = self.series(lab, "a.qlog", "b.qlog")
        self.assertEqual(self.saved(page, "CSV"), table)
        self.assertEqual(self.saved(page, "SVG"), svg)
        # A part of the time: the rows of that part, and an axis that shows it.
        for _ in range(4):
            page.get_by_role("button", name="Zoom in").click()
        shown = page.locator("output").inner_text()
        part = self.saved(page, "CSV")
        times = [float(row["seconds"]) for row in csv.DictReader(io.StringIO(part))]
        from_, to = map(float, re.fullmatch(r"([\d.]+) s to ([\d.]+) s", shown).groups())
        self.assertTrue(times and from_ - 1e-3 <= min(times) and max(times) <= to + 1e-3, (shown, min(times), max(times)))
        self.assertLess(len(part.splitlines()), len(table.splitlines()) / 2)
        self.assertTrue(set(part.splitlines()) <= set(table.splitlines()))
        for dark in (False, True):
            for width in (400, 1280):
                page = self.view(lab, "live", width=width, dark=dark)
                page.wait_for_function("() => document.querySelectorAll('data[data-key=loss]').length === 2")
                page.wait_for_timeout(600)
                self.shot(page, f"live-two-{width}-{'dark' if dark else 'light'}")
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0)

    def test_time_is_zoomed_and_moved_by_wheel_mouse_touch_and_keyboard(self):
        lab = self.lab("--follow", "a.qlog")
        simulated(lab.directory, "a.qlog")
        page = self.view(lab, "live", has_touch=True)
        page.locator('data[data-key="loss"]').wait_for(state="attached")
        canvas = page.locator(".live-panels canvas").first
        box = canvas.bounding_box()
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

        def view():
            return tuple(map(float, re.fullmatch(r"([\d.]+) s to ([\d.]+) s", page.locator("output").inner_text()).groups()))

        def changes(what, act, judge):
            before = view()
            act()
            after = harness.until(f"{what}: {before} to {view()}", lambda: judge(before, view()) and view())
            return after

        def is_in(before, after):
            return after[1] - after[0] < before[1] - before[0]

        def is_moved(before, after):
            return after != before and abs((after[1] - after[0]) / (before[1] - before[0]) - 1) < 0.05

        whole = view()
        page.mouse.move(*middle)
        changes("wheel", lambda: page.mouse.wheel(0, -400), is_in)
        changes("wheel sideways", lambda: page.mouse.wheel(200, 0), is_moved)

        def drag():
            page.mouse.down()
            page.mouse.move(middle[0] + 100, middle[1], steps=5)
            page.mouse.up()
            page.mouse.move(*middle)

        changes("mouse", drag, lambda before, after: is_moved(before, after) and after[0] < before[0])
        page.locator(".live-panels").focus()
        changes("plus", lambda: page.keyboard.press("+"), is_in)
        changes("arrow", lambda: page.keyboard.press("ArrowRight"), lambda before, after: after[0] > before[0])
        changes("minus", lambda: page.keyboard.press("-"), lambda before, after: is_in(after, before))
        changes("end", lambda: page.keyboard.press("End"), lambda _, after: abs(after[1] - whole[1]) < 0.01)
        changes("home", lambda: page.keyboard.press("Home"), lambda _, after: after == whole)

        session = page.context.new_cdp_session(page)

        def touch(kind, *points):
            places = [{"x": x, "y": middle[1], "id": number} for number, x in enumerate(points)]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

        def pinch():
            touch("touchStart", middle[0] - 50, middle[0] + 50)
            for spread in range(60, 160, 10):
                touch("touchMove", middle[0] - spread, middle[0] + spread)
            touch("touchEnd")

        changes("pinch", pinch, is_in)

        def swipe():
            touch("touchStart", middle[0])
            for way in range(10, 110, 10):
                touch("touchMove", middle[0] - way)
            touch("touchEnd")

        changes("swipe", swipe, lambda before, after: is_moved(before, after) and after[0] > before[0])

    def test_garbage_truncation_and_replacement_are_survived(self):
        lab = self.lab("--follow", "run.qlog")
        whole = simulated(lab.directory, "other.qlog")
        file = lab.directory / "run.qlog"
        file.write_bytes(b"this is not a trace")
        page = self.view(lab, "live")
        page.get_by_text("not a trace so far").wait_for()
        last = metrics(whole)[-1]["data"]["congestion_window"]
        cut = whole.index(b"\x1e", len(whole) // 2)
        file.write_bytes(whole[:cut] + b"\x1egarbage \xff\n\x1e{\"cut\":" + whole[cut:])
        self.wait_for_value(page, "congestion_window", last)
        page.get_by_text("skipped 2 records").wait_for()
        page.get_by_text("replaced or truncated 1 time").wait_for()
        file.write_bytes(whole[:cut])
        self.wait_for_value(page, "congestion_window", metrics(whole[:cut])[-1]["data"]["congestion_window"])
        page.get_by_text("replaced or truncated 2 times").wait_for()
        with file.open("ab") as more:
            more.write(whole[cut:] + whole)
        self.wait_for_value(page, "congestion_window", last)
        page.get_by_label("Connection").first.select_option("1")
        self.assertEqual(page.get_by_label("Connection").first.locator("option").all_inner_texts(), ["the last", "1", "2"])
        file.unlink()
        page.get_by_text("it does not exist yet").wait_for()
        self.wait_for_value(page, "congestion_window", last)

    def test_names_and_garbage_are_shown_as_text(self):
        """Neither a file's name nor its content becomes part of the page."""
        name = "<img src=x onerror=alert(1)>"
        lab = self.lab("--follow", f"{name}.qlog")
        evil = {"congestion_control": "<b>bold</b>", "limited_by": "<script>alert(1)</script>", "loss": 0.5}
        state = {"new": "<i>x</i> <u>y</u>", "constraint": "<s>z</s>"}
        events = [
            {"file_schema": "x"},
            {"time": 1, "name": "recovery:metrics_updated", "data": evil},
            {"time": 2, "name": "recovery:congestion_state_updated", "data": state},
        ]
        text = "".join(f"\x1e{json.dumps(event)}\n" for event in events) + "\x1e<h1>\n\x1e"
        (lab.directory / f"{name}.qlog").write_text(text)
        page = self.view(lab, "live")
        page.get_by_text("Controller <b>bold</b>").wait_for()
        page.get_by_text("skipped 1 record").wait_for()
        self.assertIn(name, page.locator(".live-state").first.inner_text())
        self.assertEqual(page.locator("main :is(img, i, u, s, script, h1)").count(), 0)

    def test_traces_of_the_directory_can_be_chosen(self):
        lab = self.lab()
        simulated(lab.directory, "later.qlog")
        page = self.view(lab, "live")
        page.get_by_label("Another trace in the lab's directory").select_option("later.qlog")
        page.get_by_role("button", name="Follow").click()
        page.locator('data[data-key="loss"]').wait_for(state="attached")


class Copying(harness.Case):
    """`downpour cp --web` opens the picture of its own transfer."""

    def test_transfer_shows_itself_and_removes_its_files(self):
        directory = self.lab().directory
        (directory / "source").write_bytes(random.Random(1).randbytes(12_000_000))
        (directory / "tmp").mkdir()
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(directory), "TMPDIR": str(directory / "tmp")}
        copy = subprocess.Popen(
            [harness.program("downpour"), "cp", "--web", "--limit", "20M", "source", "target"],
            cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        self.addCleanup(lambda: copy.poll() is None and copy.kill())
        url = None
        while url is None:
            line = copy.stderr.readline()
            self.assertTrue(line, "it exited without an address")
            url = re.search(r"http://127\.0\.0\.1:(\d+)/(\w+)/\S*", line)
        # A directory, and on a desktop the redirect file for its browser.
        made = [path.stat().st_mode for path in (directory / "tmp").iterdir()]
        self.assertEqual(sum(map(stat.S_ISDIR, made)), 1)
        self.assertEqual([mode & 0o077 for mode in made if mode & 0o077], [])

        class Served:
            port, secret = int(url[1]), url[2]

        Served.url = f"http://127.0.0.1:{Served.port}/{Served.secret}/"
        page = self.view(Served, "live")
        self.expected += ["ERR_"]
        page.wait_for_function("() => Number(document.querySelector('data[data-key=delivered_rate]')?.value) > 1e6")
        page.wait_for_timeout(1500)
        # As the progress bar: the limit, not the path, and the time left.
        self.assertIn("limited by: rate limit", page.inner_text(".live-state"))
        self.assertNotIn("limited by the path", page.inner_text("#live"))
        self.assertRegex(page.inner_text(".live-progress"), r"^ ?\d+ %, [\d.]+ MB of 12 MB, \d+ s left$")
        self.shot(page, "live-cp-1280-light")
        self.assertEqual(copy.wait(harness.PATIENCE), 0, copy.stderr.read())
        page.locator(".live-state", has_text="transfer ended").wait_for()
        self.assertTrue(page.get_by_role("alert").filter(has_text="The lab has stopped").is_hidden(), "no error")
        self.assertIn("12,000,000 bytes", page.inner_text("#live"))
        self.assertRegex(page.inner_text("#live"), r"12,000,000 bytes, sent: \d+ blocks done, 0 open")
        # The shown data can still be saved.
        page.wait_for_function("() => document.querySelector('a[download=\"series.csv\"]').href.startsWith('blob:')")
        with page.expect_download() as saved:
            page.click("a[download='series.csv']")
        self.assertGreater(len(pathlib.Path(saved.value.path()).read_text().splitlines()), 10)
        self.assertEqual((directory / "target").read_bytes(), (directory / "source").read_bytes())
        self.assertEqual(list((directory / "tmp").iterdir()), [])


if __name__ == "__main__":
    harness.main()
