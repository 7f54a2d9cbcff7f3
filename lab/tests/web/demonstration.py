"""The room Demonstration: every viewer sees the complete picture, at any time."""

import base64
import pathlib
import random
import shutil
import struct
import tempfile
import zlib

import harness

WIDTH, HEIGHT = 256, 192
#: The repaired share: all of a system with coded symbols only, none of a system without a code.
REPAIRED = {"rc-udp": "100 %", "linux-tcp": "0 %", "arq-cubic": "0 %", "arq-reno": "0 %"}

#: FNV-1a of the red, green and blue of every canvas of a system; "" for a canvas that is not opaque.
HASHES = """() => [...document.querySelectorAll(".system canvas[role=img]")].map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let hash = 0x811c9dc5;
  for (let at = 0; at < data.length; at += 1) {
    if (at % 4 !== 3) hash = Math.imul(hash ^ data[at], 0x01000193) >>> 0;
    else if (data[at] !== 255) return "";
  }
  return hash.toString(16);
})"""

#: Presses start, and returns the milliseconds until a canvas shows pixels.
FIRST = """() => new Promise((resolve) => {
  const before = document.getElementById("demonstration").dataset.run;
  const began = performance.now();
  document.querySelector("#demonstration button.main").click();
  const look = () => {
    const isNew = document.getElementById("demonstration").dataset.run !== before;
    const shows = isNew && [...document.querySelectorAll(".system canvas[role=img]")].some((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value, at) => at % 4 !== 3 && value !== 0x80 && data[at | 3] === 255);
    });
    if (shows) resolve(performance.now() - began);
    else requestAnimationFrame(look);
  };
  look();
})"""


def fnv(data):
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{value:x}"


def picture(seed=1):
    """Returns pixels without two equal rows, and their PNG file."""
    drawn = random.Random(seed)
    rows = [bytes(drawn.randrange(256) for _ in range(WIDTH * 3)) for _ in range(HEIGHT)]

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    return b"".join(rows), png


def move(page, **sliders):
    """Moves sliders like a user."""
    for name, value in sliders.items():
        page.eval_on_selector(
            f"#demonstration input[name={name}]",
            "(input, value) => { input.value = value; input.dispatchEvent(new Event('input', { bubbles: true })); }",
            str(value),
        )


def choose(page, *systems):
    for box in page.locator("#demonstration input[type=checkbox][value]").all():
        if box.get_attribute("value") not in systems:
            box.uncheck()
    for system in systems:
        page.check(f"#demonstration input[value='{system}']")


def number(page, system, name):
    """Returns a number of the system at this position, as the page shows it."""
    return page.locator(".system").nth(system).locator("dl div", has=page.get_by_text(name, exact=True)).locator("dd").inner_text()


class Demonstration(harness.Case):
    def room(self, lab, **options):
        page = self.view(lab, options.pop("room", "demonstration"), **options)
        page.wait_for_selector("#demonstration button.main")
        return page

    def begin(self, page, png, systems, **sliders):
        choose(page, *systems)
        move(page, **sliders)
        if png:
            page.set_input_files("#demonstration input[type=file]", {"name": "one.png", "mimeType": "image/png", "buffer": png})
        return page.evaluate(FIRST)

    def end(self, page):
        page.wait_for_selector("#demonstration[data-state=over]")
        # Received events are drawn at the next frame of the screen.
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return page.evaluate(HASHES)

    def test_every_system_delivers_the_picture(self):
        page = self.room(self.lab())
        every = page.locator("#demonstration input[type=checkbox][value]").evaluate_all("(boxes) => boxes.map(({ value }) => value)")
        shown = set()
        for seed, (loss, systems) in enumerate(
            [
                (0, ["auto", "linux-tcp", "rc-udp"]),
                (10, ["auto", "linux-tcp", "tornado-transfer", "rc-udp"]),
                (5, ["auto-told", "arq-cubic", "arq-reno"]),
                (5, ["lt-tcp", "ttp"]),
            ]
        ):
            shown.update(systems)
            pixels, png = picture(seed)
            first = self.begin(page, png, systems, loss=loss, delay=20, rate=4, speed=2)
            self.assertLess(first, 1000, f"milliseconds until pixels are drawn, {loss} % loss")
            self.assertEqual(self.end(page), [fnv(pixels)] * len(systems), f"{loss} % loss")
            for at, system in enumerate(systems):
                # Without random loss TCP overflows the queue, and auto does not.
                if loss > 0 or system == "auto":
                    self.assertEqual(number(page, at, "Packets lost") != "0", loss > 0, system)
                if system in REPAIRED:
                    self.assertEqual(number(page, at, "Repaired"), REPAIRED[system], system)
            print(f"first pixels after {first:.0f} ms at {loss} % loss", flush=True)
        self.assertEqual(shown, set(every), "every system that can be chosen")

    def test_emulated_links_deliver_the_picture(self):
        page = self.room(self.lab())
        systems = ["auto", "linux-tcp", "tornado-transfer", "rc-udp"]
        page.check("#demonstration input[value=emulated]")
        self.assertTrue(page.is_disabled("#demonstration input[name=speed]"), "time is real")
        pixels, png = picture()
        first = self.begin(page, png, systems, loss=5, delay=20, rate=4)
        print(f"first pixels over emulated links after {first:.0f} ms", flush=True)
        self.assertEqual(self.end(page), [fnv(pixels)] * 4, page.inner_text("#demonstration"))
        self.assertIn("TCP of this kernel", page.locator(".system").nth(1).inner_text())
        for at, system in enumerate(systems):
            self.assertNotEqual(number(page, at, "Packets lost"), "0", system)
        self.assertIn("packets", number(page, 1, "Retransmitted"))
        self.assertEqual([number(page, at, "Repaired") for at in (1, 3)], ["0 %", "100 %"])
        # Hosts are created first, which takes longer on a busy machine.
        self.assertLess(first, 3000, "milliseconds until pixels are drawn")
        self.assertIn("every system has ended; the emulation was ", page.inner_text("#demonstration"))
        self.shot(page, "demonstration-emulated")

    def test_emulated_links_change_and_end_with_the_lab(self):
        temporary = pathlib.Path(tempfile.mkdtemp(prefix="web-test-"))
        self.addCleanup(shutil.rmtree, temporary)
        lab = self.lab(environment={"TMPDIR": str(temporary)})
        page = self.room(lab)
        page.check("#demonstration input[value=emulated]")
        # It takes 20 s, and still plays when a slow browser stops it.
        page.locator("#demonstration label", has_text="Scaled to at most").locator("select").select_option(index=2)
        self.begin(page, None, ["auto", "linux-tcp"], loss=0, delay=20, rate=0.5)
        self.assertEqual([number(page, at, "Packets lost") for at in (0, 1)], ["0", "0"])
        move(page, loss=20)
        harness.until("packets are lost", lambda: all(int(number(page, at, "Packets lost")) > 3 for at in (0, 1)))
        other = self.room(lab)
        other.wait_for_selector(".system")
        self.assertTrue(other.is_checked("#demonstration input[value=emulated]"), "the form is that of the playing demonstration")
        self.assertTrue(other.is_disabled("#demonstration input[name=speed]"))
        page.get_by_role("button", name="Stop", exact=True).click()
        page.wait_for_selector("#demonstration[data-state=over]")
        self.assertIn("stopped; the emulation was ", page.inner_text("#demonstration"))
        harness.until("its process ends", lambda: not lab.children())
        self.assertEqual(list(temporary.glob("downpour-lab-*")), [], "no temporary files are left")
        move(page, rate=0.5, loss=0)
        self.begin(page, None, ["auto", "linux-tcp"])
        player = lab.children()
        self.assertEqual(len(player), 1, "one process plays")
        page.goto("about:blank")
        other.goto("about:blank")
        lab.kill()
        harness.until("it ends with the lab", lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in player))

    def test_late_and_returning_viewers_see_all(self):
        lab = self.lab()
        page = self.room(lab)
        pixels, png = picture()
        self.begin(page, png, ["auto", "linux-tcp"], loss=5, delay=20, rate=0.5, speed=0.2)
        run = page.get_attribute("#demonstration", "data-run")
        page.reload()
        other = self.room(lab, room=f"demonstration/{run}")
        self.assertEqual(page.evaluate("location.hash"), f"#demonstration/{run}")
        for viewer in (page, other):
            viewer.wait_for_selector(".system")
            self.assertEqual(viewer.get_attribute("#demonstration", "data-state"), "playing", "in the middle")
        move(other, speed=4)
        hashes = [self.end(viewer) for viewer in (page, other)]
        self.assertEqual(hashes, [[fnv(pixels)] * 2] * 2)
        self.assertEqual(page.input_value("#demonstration input[name=speed]"), "4", "one viewer's slider moves the other's")

    def test_sliders_change_the_links(self):
        page = self.room(self.lab())
        _, png = picture()
        self.begin(page, png, ["auto", "linux-tcp"], loss=0, delay=20, rate=1, speed=0.5)
        self.assertEqual([number(page, at, "Packets lost") for at in (0, 1)], ["0", "0"])
        move(page, loss=20)
        harness.until("packets are lost", lambda: all(int(number(page, at, "Packets lost")) > 3 for at in (0, 1)))
        self.assertIn("20 % loss", page.inner_text("#demonstration"))
        page.get_by_role("button", name="Stop", exact=True).click()
        page.wait_for_selector("#demonstration[data-state=over]")
        self.assertIn("stopped", page.inner_text("#demonstration"))

    def test_a_recording_plays_without_the_lab(self):
        lab = self.lab()
        page = self.room(lab)
        pixels, png = picture()
        self.begin(page, png, ["auto", "rc-udp"], loss=10, delay=20, rate=8, speed=4)
        self.end(page)
        with page.expect_download() as saved:
            page.click("text=Save as a self-contained page")
        file = lab.directory / saved.value.suggested_filename
        saved.value.save_as(file)
        page.goto("about:blank")
        self.assertEqual(lab.stop(), 0)
        self.expected.append(f"it asks {file.as_uri()}")
        page.goto(file.as_uri())
        complete = ".system[data-state=complete]"
        page.wait_for_function(f"document.querySelectorAll('{complete}').length === 2")
        self.assertEqual(page.evaluate(HASHES), [fnv(pixels)] * 2)
        # Back to the start, and to the end again.
        seek = "(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); }"
        page.eval_on_selector("input[type=range]", seek, "0")
        page.wait_for_function(f"document.querySelectorAll('{complete}').length === 0")
        self.assertNotIn(fnv(pixels), page.evaluate(HASHES))
        page.eval_on_selector("input[type=range]", seek, "999")
        page.wait_for_function(f"document.querySelectorAll('{complete}').length === 2")
        self.assertEqual(page.evaluate(HASHES), [fnv(pixels)] * 2)
        self.shot(page, "demonstration-recording")

    def test_a_video_can_be_saved(self):
        page = self.room(self.lab())
        _, png = picture()
        self.begin(page, png, ["auto", "linux-tcp"], loss=1, delay=10, rate=8, speed=1)
        self.end(page)
        with page.expect_download() as saved:
            page.click("text=Save as a video")
        film = pathlib.Path(saved.value.path()).read_bytes()
        self.assertGreater(len(film), 10_000)
        viewer = harness._Browser.get().new_page()
        self.addCleanup(viewer.close)
        kind = "mp4" if saved.value.suggested_filename.endswith(".mp4") else "webm"
        size = viewer.evaluate(
            """(url) => new Promise((resolve, reject) => {
              const film = document.createElement("video");
              film.onloadeddata = () => resolve([film.videoWidth, film.videoHeight]);
              film.onerror = () => reject(new Error("it does not play"));
              film.src = url;
            })""",
            f"data:video/{kind};base64,{base64.b64encode(film).decode()}",
        )
        self.assertEqual(size, [1280, 720])

    def test_floor_stays_after_a_later_link_change(self):
        page = self.room(self.lab())
        _, png = picture()
        self.begin(page, png, ["auto", "arq-reno"], loss=5, delay=40, rate=4, speed=1)
        page.wait_for_selector(".system[data-state=complete]")
        first = page.locator(".system[data-state=complete]").first
        time = first.locator("dd").first
        shown = time.inner_text()
        self.assertIn("floor", shown)
        move(page, delay=300, rate=0.5, loss=30)
        harness.until("the links have changed", lambda: "30 % loss" in page.inner_text("#demonstration"))
        self.assertEqual(time.inner_text(), shown)
        page.get_by_role("button", name="Stop", exact=True).click()
        page.wait_for_selector("#demonstration[data-state=over]")

    def test_invalid_requests_are_reported(self):
        lab = self.lab()
        page = self.room(lab)
        choose(page, "auto")
        self.assertTrue(page.is_disabled("#demonstration button.main"), "one system")
        choose(page, "auto", "linux-tcp")
        page.set_input_files("#demonstration input[type=file]", {"name": "no.png", "mimeType": "image/png", "buffer": b"no"})
        page.click("#demonstration button.main")
        alert = page.locator("#demonstration [role=alert]")
        harness.until("it reports the unreadable file", lambda: "Cannot read" in alert.inner_text())
        page.set_input_files("#demonstration input[type=file]", [])
        move(page, rate=0.5, speed=0.1)
        for run in (1, 2):
            page.click("#demonstration button.main")
            page.wait_for_selector(f"#demonstration[data-run='{run}'][data-state=playing]")
        self.expected.append("409")
        page.click("#demonstration button.main")
        harness.until("it reports two playing demonstrations", lambda: "two demonstrations" in alert.inner_text())

    def test_page_is_readable_and_labelled(self):
        lab = self.lab()
        page = self.room(lab, width=1600, height=1000)
        self.begin(page, None, ["auto", "linux-tcp", "tornado-transfer", "rc-udp"], loss=5, delay=40, rate=5, speed=0.5)
        page.wait_for_timeout(2500)
        self.shot(page, "demonstration-wide-light")
        page.check("text=Colour by kind of delivery:")
        page.wait_for_timeout(500)
        self.shot(page, "demonstration-wide-coloured")
        narrow = self.room(lab, width=400, height=800, dark=True)
        narrow.wait_for_selector(".system")
        wide = narrow.evaluate("document.documentElement.scrollWidth")
        self.shot(narrow, "demonstration-400-dark")
        self.assertLessEqual(wide, 400, "the page fits")
        harness.until("the sliders are where the links are", lambda: narrow.input_value("#demonstration input[name=speed]") == "0.5")
        unlabelled = page.evaluate(
            """() => [...document.querySelectorAll("#demonstration :is(input, select, button)")]
              .filter((control) => !(control.labels?.length || control.getAttribute("aria-label") || control.textContent.trim()))
              .map((control) => control.outerHTML)"""
        )
        self.assertEqual(unlabelled, [], "without a label")


if __name__ == "__main__":
    harness.main()
