// @ts-check
// The view of a demonstration: one picture for each system, drawn from its received bytes. Recordings use it too.
import { element, time } from "./wire.js";

/**
 * @typedef {{ id: string, label: string, about: string }} System
 * @typedef {{ id: number, width: number, height: number, seed: number, systems: System[], emulated: boolean }} Start
 * @typedef {{ loss: number, delay: number, rate: number, speed: number }} Conditions
 * @typedef {{ pieces: [number, number, string][], open: [number, number, number][], bytes: number[], rate: number,
 *   lost: number, flight: number, resent: number, done: number | null, floor: number | null, gaveUp: boolean }} SystemFrame
 * @typedef {{ t: number, link: Conditions, floor: number | null, systems: SystemFrame[] }} Frame
 * @typedef {{ start?: Start, frame?: Frame, over?: { why: string } }} Happening one of them
 */

/**
 * Returns the setup and the frames, to play them again.
 * @param {Happening[]} events
 * @returns {{ start: Start, frames: Frame[], end: number }} the last frame's time is the end, in seconds
 */
export function course(events) {
  const start = events[0]?.start;
  const frames = events.flatMap(({ frame }) => frame ?? []);
  const last = frames.at(-1);
  if (!start || !last) throw new Error("Nothing recorded.");
  return { start, frames, end: last.t };
}

/** The value of a missing byte. */
const MISSING = 0x80;

/** The kinds of delivery: name and colour. */
export const KINDS = [
  { name: "first transmission", colour: [0x3d, 0x9b, 0xe0] },
  { name: "retransmission", colour: [0xf2, 0xa4, 0x1f] },
  { name: "rebuilt by decoding", colour: [0x2f, 0xbf, 0x71] },
  { name: "delivered in order by the kernel's TCP", colour: [0xa9, 0x8b, 0xd6] },
];

/** The kind of a missing byte. */
const NONE = 255;

/** The picture of one system: its bytes, and the kind of each. */
export class Picture {
  /**
   * @param {number} width
   * @param {number} height
   */
  constructor(width, height) {
    this.width = width;
    this.canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { width: String(width), height: String(height), role: "img" }));
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { willReadFrequently: true }));
    this.image = new ImageData(width, height);
    this.bytes = new Uint8Array(width * height * 3);
    this.kinds = new Uint8Array(width * height * 3);
    /** The range of bytes to draw. */
    this.touched = [0, 0];
    this.isColoured = false;
    this.clear();
  }

  /** Resets the picture. */
  clear() {
    this.bytes.fill(MISSING);
    this.kinds.fill(NONE);
    this.touched = [0, this.kinds.length];
  }

  /**
   * Adds bytes in Base64; `paint` draws them.
   * @param {number} offset
   * @param {number} kind
   * @param {string} base64
   */
  put(offset, kind, base64) {
    const text = atob(base64);
    for (let at = 0; at < text.length; at += 1) this.bytes[offset + at] = text.charCodeAt(at);
    this.kinds.fill(kind, offset, offset + text.length);
    this.touched = [Math.min(this.touched[0], offset), Math.max(this.touched[1], offset + text.length)];
  }

  /** @param {boolean} isColoured whether bytes are drawn in the colour of their kind */
  colour(isColoured) {
    this.isColoured = isColoured;
    this.touched = [0, this.kinds.length];
  }

  /** Draws the changes. */
  paint() {
    const [from, to] = this.touched;
    if (from >= to) return;
    const { bytes, kinds, image } = this;
    const first = Math.floor(from / 3);
    const last = Math.ceil(to / 3);
    for (let pixel = first; pixel < last; pixel += 1) {
      const at = pixel * 3;
      const out = pixel * 4;
      const kind = kinds[at];
      image.data[out + 3] = 255;
      if (this.isColoured && kind !== NONE) {
        const [red, green, blue] = KINDS[kind].colour;
        // The picture remains visible as brightness.
        const light = 0.5 + 0.5 * (0.3 * bytes[at] + 0.6 * bytes[at + 1] + 0.1 * bytes[at + 2]) / 255;
        image.data[out] = red * light;
        image.data[out + 1] = green * light;
        image.data[out + 2] = blue * light;
      } else {
        image.data[out] = bytes[at];
        image.data[out + 1] = bytes[at + 1];
        image.data[out + 2] = bytes[at + 2];
      }
    }
    const top = Math.floor(first / this.width);
    const bottom = Math.ceil(last / this.width);
    this.context.putImageData(image, 0, 0, 0, top, this.width, bottom - top);
    this.touched = [this.kinds.length, 0];
  }
}

/**
 * @param {number} bytes
 * @returns {string}
 */
function size(bytes) {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(2)} MB`;
}

/**
 * @param {number} part
 * @param {number} whole
 * @returns {string}
 */
function percent(part, whole) {
  const share = (part / whole) * 100;
  return `${share > 0 && share < 1 ? share.toFixed(1) : Math.floor(share)} %`;
}

/** The numbers of a system, in their order on the page. */
export const NUMBERS = ["Time", "Rate", "Packets lost", "Retransmitted", "Repaired", "In flight"];

/**
 * Returns the numbers of a system, as text.
 * @param {Frame} frame
 * @param {number} at
 * @param {number} length bytes of the picture
 * @returns {string[]}
 */
export function numbers(frame, at, length) {
  const { bytes, rate, lost, flight, resent, done, floor, gaveUp } = frame.systems[at];
  const factor = done !== null && floor ? `, ${(done / floor).toFixed(2)}\u00a0×\u00a0floor` : "";
  const mean = done === null ? "" : `mean ${((length * 8) / done / 1e6).toFixed(2)} Mbit/s`;
  return [
    gaveUp ? "gave up" : `${time(done ?? frame.t)}${factor}`,
    mean || `${rate.toFixed(2)} Mbit/s`,
    String(lost),
    // The kernel's TCP only counts retransmissions.
    bytes[3] > 0 ? `${resent} packets` : percent(bytes[1], length),
    percent(bytes[2], length),
    size(flight),
  ];
}

/**
 * @param {Conditions} link
 * @returns {string}
 */
export function words(link) {
  return `${link.loss} % loss and ${link.delay} ms in each direction, ${link.rate} Mbit/s`;
}

/** A demonstration on a page: the screen's next frame shows the events given to `apply`. */
export class Show {
  /**
   * @param {Start} start
   * @param {HTMLElement} root is filled
   */
  constructor(start, root) {
    this.start = start;
    this.length = start.width * start.height * 3;
    /** @type {Frame | null} */
    this.frame = null;
    this.asked = 0;
    this.link = element("p", { class: "soft" });
    this.news = element("p", { "aria-live": "polite" });
    this.ended = new Set();
    this.panels = start.systems.map((system) => new Panel(system, start));
    const figures = element("div", { class: "systems" }, ...this.panels.map((panel) => panel.figure));
    root.replaceChildren(this.link, figures, this.news);
  }

  /** Restarts. */
  clear() {
    this.frame = null;
    this.ended.clear();
    this.news.textContent = "";
    for (const panel of this.panels) panel.picture.clear();
    this.paintSoon();
  }

  /** @param {boolean} isColoured */
  colour(isColoured) {
    for (const panel of this.panels) panel.picture.colour(isColoured);
    this.paintSoon();
  }

  /** @param {Frame} frame the next one */
  apply(frame) {
    this.frame = frame;
    frame.systems.forEach((system, at) => {
      for (const piece of system.pieces) this.panels[at].picture.put(...piece);
      if ((system.done !== null || system.gaveUp) && !this.ended.has(at)) {
        this.ended.add(at);
        const label = this.start.systems[at].label;
        this.news.textContent = system.gaveUp
          ? `${label} gave up.`
          : `${label} has the complete picture after ${numbers(frame, at, this.length)[0]}.`;
      }
    });
    this.paintSoon();
  }

  /** Draws at the next frame of the screen. */
  paintSoon() {
    if (this.asked === 0) this.asked = requestAnimationFrame(() => this.paint());
  }

  /** Draws now. */
  paint() {
    cancelAnimationFrame(this.asked);
    this.asked = 0;
    const { frame } = this;
    if (frame) {
      const floor = frame.floor === null ? "none: all packets are lost" : `${time(frame.floor)}`;
      this.link.textContent = `Every link: ${words(frame.link)}. The floor, the least time possible at the mean loss: ${floor}.`;
    }
    this.panels.forEach((panel, at) => panel.paint(frame, at, this.length));
  }
}

/** One system of a demonstration. */
class Panel {
  /**
   * @param {System} system
   * @param {Start} start
   */
  constructor(system, start) {
    this.label = system.label;
    this.picture = new Picture(start.width, start.height);
    this.width = start.width;
    this.height = start.height;
    // The open blocks are drawn over the picture, not into it.
    this.over = /** @type {HTMLCanvasElement} */ (element("canvas", { width: "64", height: String(start.height), "aria-hidden": "true", class: "open" }));
    this.progress = element("progress", { max: String(start.width * start.height * 3), value: "0", "aria-label": `${system.label}: bytes of the picture` });
    this.cells = NUMBERS.map(() => element("dd"));
    const list = element("dl");
    NUMBERS.forEach((name, at) => list.append(element("div", {}, element("dt", {}, name), this.cells[at])));
    const layers = element("div", { class: "layers" }, this.picture.canvas, this.over);
    // A tall picture must fit the window.
    layers.style.maxWidth = `${(80 * start.width) / start.height}vh`;
    this.figure = element(
      "figure",
      { class: "system" },
      element("figcaption", { title: system.about }, system.label),
      layers,
      this.progress,
      list,
    );
  }

  /**
   * @param {Frame | null} frame
   * @param {number} at
   * @param {number} length
   */
  paint(frame, at, length) {
    this.picture.paint();
    const system = frame?.systems[at];
    const has = system ? system.bytes.reduce((sum, bytes) => sum + bytes, 0) : 0;
    this.progress.value = has;
    const state = system?.gaveUp ? "gave up" : has === length ? "complete" : "incomplete";
    const label = `The picture as ${this.label} has it: ${state}`;
    if (this.picture.canvas.getAttribute("aria-label") !== label) this.picture.canvas.setAttribute("aria-label", label);
    this.figure.dataset.state = system?.gaveUp ? "gave-up" : has === length ? "complete" : "open";
    const texts = frame ? numbers(frame, at, length) : NUMBERS.map(() => "");
    texts.forEach((text, number) => {
      this.cells[number].textContent = text;
    });
    this.paintOpen(system?.open ?? []);
  }

  /**
   * Draws the fill level of blocks with symbols that are not pixels yet.
   * @param {[number, number, number][]} blocks
   */
  paintOpen(blocks) {
    const context = /** @type {CanvasRenderingContext2D} */ (this.over.getContext("2d"));
    const { width, height } = this.over;
    context.clearRect(0, 0, width, height);
    context.fillStyle = "rgb(47 191 113 / 35%)";
    for (const [offset, length, percent] of blocks) {
      const top = offset / 3 / this.width;
      const rows = Math.max(2, length / 3 / this.width);
      context.fillRect(0, top, (width * percent) / 100, rows);
    }
  }
}

/**
 * Creates the switch for colours, with their legend.
 * @param {(isColoured: boolean) => void} changed
 * @returns {HTMLElement}
 */
export function colourSwitch(changed) {
  const box = element("input", {
    type: "checkbox",
    change: (/** @type {Event} */ event) => changed(/** @type {HTMLInputElement} */ (event.target).checked),
  });
  const keys = [...KINDS, { name: "missing", colour: [MISSING, MISSING, MISSING] }].map(({ name, colour }) => {
    const patch = element("span", { class: "patch" });
    patch.style.background = `rgb(${colour.join(" ")})`;
    return element("span", {}, patch, name);
  });
  return element("div", { class: "row" }, element("label", {}, box, "Colour by kind of delivery:"), ...keys);
}
