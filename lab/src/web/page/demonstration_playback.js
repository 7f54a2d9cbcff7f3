// @ts-check
// Plays a recording from the events in the page.
import { element, time } from "./wire.js";
import { Show, colourSwitch, course } from "./demonstration_show.js";

/** Plays the events of a demonstration on a page of its own. */
class Playback {
  /**
   * @param {import("./demonstration_show.js").Happening[]} events
   * @param {HTMLElement} root
   */
  constructor(events, root) {
    const { start, frames, end } = course(events);
    this.frames = frames;
    this.end = end;
    /** The number of drawn frames. */
    this.next = 0;
    /** Seconds. */
    this.at = 0;
    this.last = 0;
    this.isPlaying = false;
    const place = element("div");
    this.button = element("button", { class: "main", click: () => this.toggle() });
    this.slider = element("input", {
      type: "range", min: "0", max: String(this.end), step: "any", value: "0", "aria-label": "Moment of the recording, in seconds",
      input: () => this.go(Number(this.slider.value)),
    });
    this.clock = element("output");
    this.speed = element("select", { "aria-label": "Speed" }, ...["0.25", "0.5", "1", "2", "4"].map((speed) => element("option", { value: speed }, `${speed} ×`)));
    this.speed.value = "1";
    root.append(
      element("h1", {}, `downpour: ${start.systems.length} systems, one picture, equal links`),
      element("p", { class: "soft" }, `A recording of ${start.emulated ? "transfers over emulated links" : "a simulation"}: every byte is drawn at the time of its arrival.`),
      element("div", { class: "row" }, this.button, this.slider, this.clock, this.speed),
      colourSwitch((isColoured) => this.show.colour(isColoured)),
      place,
    );
    this.show = new Show(start, place);
    this.toggle();
  }

  toggle() {
    if (!this.isPlaying && this.at >= this.end) this.go(0);
    this.isPlaying = !this.isPlaying;
    this.button.textContent = this.isPlaying ? "Pause" : "Play";
    this.last = performance.now();
    if (this.isPlaying) requestAnimationFrame(() => this.tick());
  }

  tick() {
    if (!this.isPlaying) return;
    const now = performance.now();
    this.go(Math.min(this.end, this.at + ((now - this.last) / 1e3) * Number(this.speed.value)));
    this.last = now;
    if (this.at >= this.end) this.toggle();
    else requestAnimationFrame(() => this.tick());
  }

  /** @param {number} at the moment to show, in seconds */
  go(at) {
    if (at < this.at) {
      this.show.clear();
      this.next = 0;
    }
    this.at = at;
    while (this.next < this.frames.length && this.frames[this.next].t <= at) {
      this.show.apply(this.frames[this.next]);
      this.next += 1;
    }
    this.slider.value = String(at);
    this.clock.textContent = `${time(at)} of ${time(this.end)}`;
  }
}

new Playback(
  JSON.parse(/** @type {HTMLElement} */ (document.getElementById("record")).textContent ?? "[]"),
  /** @type {HTMLElement} */ (document.getElementById("demonstration")),
);
