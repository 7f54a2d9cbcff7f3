"""The page as a whole: it loads, is accessible, talks to no other host, and slow viewers delay no others."""

import http.client
import json
import os
import pathlib
import signal
import socket
from urllib.parse import urlencode

import harness

#: Roles of controls, which need a name.
CONTROLS = {
    "button", "checkbox", "combobox", "link", "listbox", "menuitem", "radio", "searchbox", "slider", "spinbutton",
    "switch", "tab", "textbox",
}
ROOMS = ["demonstration", "testing", "live", "results"]
#: Tables of stored results, by their addresses.
TABLES = {
    "results": "#results-all > .wide tbody tr",
    "results/experiments/arq/fig3": "#results-one .sweep td",
    "testing/experiments/arq/fig3": "#testing .sweep td",
}
#: The tables that do not fit and scroll sideways.
CUT = """() => [...document.querySelectorAll("table")].filter((table) => table.clientWidth
    && (table.scrollWidth > table.clientWidth || table.getBoundingClientRect().right > innerWidth))
    .map((table) => table.innerText.slice(0, 80))"""

#: A trace with one report.
TRACE = '\x1e{"file_schema":"x"}\n\x1e{"time":1,"name":"recovery:metrics_updated","data":{"loss":0.5}}\n'

#: Idle connections, more than the lab keeps open.
STRANGERS = 300

#: More tabs of one browser than it has connections to a server.
TABS = 7

#: The setup of a demonstration: a picture of 3 MB on the fastest links, so that its bytes are sent in seconds.
DEMONSTRATION = {"systems": "auto,linux-tcp,tornado-transfer,rc-udp", "width": 1000, "height": 1000, "seed": 1, "loss": 0, "delay": 5,
                 "rate": 100, "speed": 8, "emulated": "false"}
#: Viewers that ask two hundred times each without reading, and the most bytes that they may cost together; 16 MB are
#: sent to each.
SLOW = 8
MEMORY = 24 << 20


def ask(lab, path, method="GET", body=None, **headers):
    """Sends a request to the lab without a browser; returns the answer with its body."""
    connection = http.client.HTTPConnection("127.0.0.1", lab.port, timeout=harness.PATIENCE)
    connection.request(method, path, body, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    answer.body = answer.read()
    connection.close()
    return answer


class Page(harness.Case):
    def test_it_loads_and_fits_in_light_and_dark_narrow_and_wide(self):
        lab = self.lab()
        for dark in (False, True):
            for width in (400, 1280):
                for room in ROOMS:
                    with self.subTest(room=room, width=width, dark=dark):
                        page = self.view(lab, room, width=width, dark=dark)
                        page.wait_for_function("room => !document.getElementById(room).hidden", arg=room)
                        page.wait_for_timeout(500)
                        self.shot(page, f"{room}-{width}-{'dark' if dark else 'light'}")
                        excess = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                        self.assertLessEqual(excess, 0, "it scrolls sideways")
                        page.context.close()

    def test_tables_fit_narrow_screens_and_keep_roles(self):
        lab = self.lab("--experiments", harness.ROOT / "experiments")
        for place, cell in TABLES.items():
            for dark in (False, True):
                with self.subTest(place=place, dark=dark):
                    page = self.view(lab, place, width=400, dark=dark)
                    page.wait_for_selector(cell)
                    self.shot(page, f"tables-{place.replace('/', '-')}-{'dark' if dark else 'light'}")
                    self.assertEqual(page.evaluate(CUT), [])
                    self.assertGreater(page.get_by_role("table").get_by_role("columnheader").count(), 2)
                    self.assertGreater(page.get_by_role("table").get_by_role("cell").count(), 2)
                    page.context.close()

    def test_rooms_by_keyboard_and_named_controls(self):
        lab = self.lab("--follow", "run.qlog")
        (lab.directory / "other.qlog").write_text("\x1e{}\n")
        (lab.directory / "run.qlog").write_text(TRACE)
        for number, room in enumerate(ROOMS, 1):
            page = self.view(lab)
            for _ in range(number):
                page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            page.wait_for_function("room => !document.getElementById(room).hidden", arg=room)
            page.wait_for_timeout(500)
            self.assertEqual(page.locator("nav a[aria-current=page]").get_attribute("href"), f"#{room}")
            self.assertEqual(self.nameless(page), [], f"controls without a name in {room}")
            page.context.close()

    def nameless(self, page):
        """Returns the controls in the accessibility tree without a name."""
        session = page.context.new_cdp_session(page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        session.detach()
        found = []
        for node in nodes:
            role = node.get("role", {}).get("value")
            if not node.get("ignored") and role in CONTROLS and not node.get("name", {}).get("value", "").strip():
                found.append(role)
        return found

    def test_times_are_rounded_before_their_unit_is_chosen(self):
        page = self.view(self.lab())
        times = [0, 0.0123, 0.9994, 0.9996, 1, 59.96, 99.94, 99.96, 119.4, 119.7, 3599.6]
        shown = page.evaluate("async (times) => { const { time } = await import('./wire.js'); return times.map(time); }", times)
        self.assertEqual(shown, [
            "0.00 ms", "12.3 ms", "999 ms", "1.00 s", "1.00 s", "60.0 s", "99.9 s", "1 min 40 s", "1 min 59 s", "2 min 00 s",
            "60 min 00 s",
        ])

    def test_stopped_lab_is_reported(self):
        lab = self.lab("--follow", "absent.qlog")
        page = self.view(lab, "live")
        page.get_by_text("it does not exist yet: waiting for it").wait_for()
        self.assertEqual(page.get_by_role("alert").count(), 0)
        self.expected += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET"]
        self.assertEqual(lab.stop(), 0)
        page.get_by_role("alert").filter(has_text="Start it again and open the address that it prints.").wait_for()

    def test_unresponsive_lab_is_reported_until_it_answers(self):
        lab = self.lab("--follow", "run.qlog")
        page = self.view(lab, "live")
        page.get_by_text("it does not exist yet: waiting for it").wait_for()
        os.kill(lab.pid, signal.SIGSTOP)
        page.get_by_role("alert").filter(has_text="The lab has stopped or cannot be reached").wait_for()
        self.expected += ["ERR_ABORTED"]
        os.kill(lab.pid, signal.SIGCONT)
        page.locator("#lost").wait_for(state="hidden")
        (lab.directory / "run.qlog").write_text(TRACE)
        page.locator('data[data-key="loss"]').wait_for(state="attached")


def sockets_of(pid):
    """Returns the number of open sockets of a process, which may close some meanwhile."""
    count = 0
    for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            count += os.readlink(file).startswith("socket:")
        except FileNotFoundError:
            pass
    return count


class Refusals(harness.Case):
    def test_only_the_page_with_the_secret_is_answered(self):
        lab = self.lab()
        own = f"/{lab.secret}/"
        here = f"127.0.0.1:{lab.port}"
        for path, headers, expected in [
            (own, {}, 200),
            (f"{own}live/traces", {}, 200),
            (f"{own}live/traces", {"Origin": f"http://{here}"}, 200),
            # DNS rebinding: another site's name that resolves to this server.
            (own, {"Host": f"evil.example:{lab.port}"}, 421),
            (f"{own}live/traces", {"Host": "evil.example"}, 421),
            (f"{own}live/traces", {"Origin": "http://evil.example"}, 403),
            (f"{own}live/traces", {"Origin": f"http://127.0.0.1:{lab.port + 1}"}, 403),
            (f"{own}live/traces", {"Origin": "null"}, 403),
            ("/", {}, 403),
            ("/live/traces", {}, 403),
            (f"/{'0' * 32}/live/traces", {}, 403),
        ]:
            answer = ask(lab, path, **headers)
            self.assertEqual(answer.status, expected, (path, headers))
            self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
            self.assertEqual(answer.headers["Referrer-Policy"], "no-referrer")
            self.assertIsNone(answer.headers["Access-Control-Allow-Origin"])

    def test_other_sites_can_neither_read_nor_start(self):
        """Even if it knows the address."""
        lab = self.lab()
        (lab.directory / "run.qlog").write_text("\x1e{}\n")
        stranger = self.view(lab).context.new_page()
        tried = stranger.evaluate(
            """async (url) => {
                const body = '{"name":"run.qlog"}';
                const tries = [
                    fetch(url), fetch(`${url}live/traces`),
                    fetch(`${url}live/follow`, { method: "POST", headers: { "content-type": "application/json" }, body }),
                    fetch(`${url}live/follow`, { method: "POST", mode: "no-cors", body }),
                ];
                return (await Promise.allSettled(tries)).map((tried) => tried.value?.type ?? tried.status);
            }""",
            lab.url,
        )
        # Requests without a preflight cannot be prevented, and have no effect.
        self.assertEqual(tried, ["rejected", "rejected", "rejected", "opaque"])
        self.assertEqual(json.loads(ask(lab, f"/{lab.secret}/live/traces").body)["followed"], [])
        framed = stranger.evaluate(
            """(url) => new Promise((done) => {
                const frame = document.createElement("iframe");
                frame.onload = () => { try { done(frame.contentDocument?.body.textContent); } catch { done("closed"); } };
                frame.src = url;
                document.body.append(frame);
            })""",
            lab.url,
        )
        self.assertIn(framed, (None, "closed", ""))

    def test_no_path_comes_from_the_browser(self):
        lab = self.lab()
        (lab.directory / "sub").mkdir()
        (lab.directory / "sub" / "hidden.qlog").write_text("\x1e{}\n")
        (lab.directory / "secret.txt").write_text("secret")
        (lab.directory / "there.qlog").write_text("\x1e{}\n")
        connection = http.client.HTTPConnection("127.0.0.1", lab.port, timeout=harness.PATIENCE)
        names = ["/etc/passwd", "../there.qlog", "sub/hidden.qlog", "secret.txt", "", "./there.qlog"]
        for name, expected in [(name, 404) for name in names] + [("there.qlog", 200)]:
            body = json.dumps({"name": name})
            connection.request("POST", f"/{lab.secret}/live/follow", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, expected, name)
        connection.close()

    def test_idle_connections_do_not_block_viewers(self):
        lab = self.lab("--follow", "run.qlog")
        (lab.directory / "run.qlog").write_text(TRACE)
        page = self.view(lab, "live")
        page.locator('data[data-key="loss"]').wait_for(state="attached")
        for number in range(STRANGERS):
            stranger = socket.create_connection(("127.0.0.1", lab.port))
            self.addCleanup(stranger.close)
            # Some send no data, some an incomplete request.
            if number % 2:
                stranger.sendall(b"GET / HTTP/1.1\r\nHost: ")
        # Well before the time limit of the kept ones, which is 10 s.
        harness.until("idle connections are closed", lambda: sockets_of(lab.pid) < STRANGERS / 2, within=5)
        self.assertEqual(ask(lab, f"/{lab.secret}/").status, 200)
        self.view(lab, "live").locator('data[data-key="loss"]').wait_for(state="attached")
        self.assertEqual(page.evaluate("fetch('live/traces').then((answer) => answer.status)"), 200)
        self.assertTrue(page.is_hidden("#lost"))


class Viewers(harness.Case):
    def test_many_tabs_of_one_browser_watch_two_traces_each(self):
        lab = self.lab("--follow", "a.qlog", "--follow", "b.qlog")
        for name in ("a", "b"):
            (lab.directory / f"{name}.qlog").write_text(TRACE)
        tabs = [self.view(lab, "live")]
        tabs += [self.view(lab, "live", beside=tabs[0]) for _ in range(TABS - 1)]
        for loss in (0.5, 0.25):
            for tab in tabs:
                tab.wait_for_function(
                    "loss => [...document.querySelectorAll('data[data-key=loss]')].filter(({ value }) => value == loss).length === 2",
                    arg=loss,
                )
                self.assertEqual(tab.evaluate("fetch('live/traces').then((answer) => answer.status)"), 200)
                self.assertTrue(tab.is_hidden("#lost"))
            for name in ("a", "b"):
                with (lab.directory / f"{name}.qlog").open("a") as file:
                    file.write(TRACE[TRACE.rindex("\x1e"):].replace("0.5", "0.25").replace('"time":1', '"time":2'))

    def test_hidden_room_or_tab_pauses(self):
        lab = self.lab("--follow", "run.qlog")
        trace = lab.directory / "run.qlog"
        trace.write_text(TRACE)
        page = self.view(lab, "live")
        shown = 'data[data-key="loss"][value="{}"]'.format
        page.locator(shown(0.5)).wait_for(state="attached")
        asked = []
        page.on("request", lambda request: asked.append(request.url.removeprefix(lab.url)))
        hide = "isHidden => Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden })"
        for number, (leave, back) in enumerate([
            (lambda: page.evaluate("location.hash = 'results'"), lambda: page.evaluate("location.hash = 'live'")),
            (lambda: page.evaluate(hide, True), lambda: page.evaluate(hide, False)),
        ]):
            leave()
            # Earlier requests have been answered.
            page.wait_for_timeout(500)
            asked.clear()
            loss = 0.125 * (number + 1)
            with trace.open("a") as file:
                file.write(TRACE[TRACE.rindex("\x1e"):].replace("0.5", str(loss)).replace('"time":1', f'"time":{number + 2}'))
            page.wait_for_timeout(2000)
            self.assertEqual([path for path in asked if path.startswith("live/")], [])
            back()
            page.locator(shown(loss)).wait_for(state="attached")

    def test_unread_answers_delay_no_one_and_cost_no_memory(self):
        """The same demonstration is played without and with them, after one that fills the common storage."""
        lab = self.lab()
        grown = []
        for run in (1, 2, 3):
            before = lab.memory()
            asked = ask(lab, f"/{lab.secret}/demonstration/runs?{urlencode(DEMONSTRATION)}", "POST", bytes(range(250)) * 12_000)
            self.assertEqual(json.loads(asked.body), {"id": run})
            events = f"/{lab.secret}/demonstration/runs/{run}/events"
            viewers = [self.slow(lab) for _ in range(SLOW if run == 3 else 0)]
            # Before anything is sent, and after everything is.
            for _ in range(2):
                for viewer in viewers:
                    viewer.sendall(f"GET {events} HTTP/1.1\r\nHost: 127.0.0.1:{lab.port}\r\n\r\n".encode() * 100)
                sent = self.read(lab, events)
            self.assertGreater(sent, MEMORY / 2)
            grown.append(lab.memory() - before)
        self.assertLess(grown[2] - grown[1], MEMORY, f"{sent} bytes sent, grown by {grown}")

    def slow(self, lab):
        """Returns a connection whose answers are not read."""
        viewer = socket.socket()
        self.addCleanup(viewer.close)
        viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        viewer.connect(("127.0.0.1", lab.port))
        return viewer

    def read(self, lab, path):
        """Reads all events of a topic, as the page does; returns their bytes."""
        total, seen = 0, {}
        while (answer := ask(lab, path, **seen)).status == 200:
            total += len(answer.body)
            last = json.loads(answer.body)["last"]
            seen = {} if last is None else {"Last_Event_ID": str(last)}
        self.assertEqual(answer.status, 204)
        return total


if __name__ == "__main__":
    harness.main()
