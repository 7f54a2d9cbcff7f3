// @ts-check
// The room Live: growing and complete traces.

import { COLOURS, MARKERS, draw, inks, interact, plotWidth, sharp, within, zoomed } from "./charts.js";
import { ask, element, watch } from "./wire.js";

/** The panels: title, and the quantities in them; the second one is dashed. */
const PANELS = /** @type {[string, string[], string[]][]} */ ([
  ["Rate, Mbit/s", ["delivered_rate", "pacing_rate"], ["delivered", "pacing"]],
  ["Window, kB", ["bytes_in_flight", "congestion_window"], ["in flight", "congestion window"]],
  ["Round-trip time, ms", ["smoothed_rtt", "latest_rtt"], ["smoothed", "latest"]],
  ["Queueing delay, ms", ["queue_delay"], ["latest RTT minus least"]],
  ["Loss estimate, %", ["loss"], ["of the packets"]],
  ["Overhead, %", ["redundancy"], ["of the source symbols"]],
  ["Open blocks", ["open_blocks"], ["started and not acknowledged"]],
]);
/** The shortest time between two requests for courses, in ms. */
const PAUSE = 500;
/** The most steps of a course of one answer. */
const MOST_STEPS = 2000;
/** The interval of requests for the list of files, in ms. */
const LOOK = 3000;
/** Cells of a map of blocks, in CSS pixels: large ones for a few, small ones for many. */
const CELLS = [24, 12];
const FEW = 100;

/**
 * @typedef {{ id: number, length: number | null, is_received: boolean, is_over: boolean, begun: number, done: number, open: number, repaired: number, per_cell: number, map: string }} Flow
 * @typedef {{ number: number, seconds: number, sent: number, received: number, lost: number, is_closed: boolean, controller: string | null, doing: string | null, limit: string | null, progress: { percent: number, words: string } | null, changes: [number, string][], last: (number | null)[], flows: Flow[] }} Connection
 * @typedef {{ name: string, bytes: number, anew: number, is_over: boolean, notices: string[], connections: Connection[] }} TraceState
 * @typedef {{ times: number[], quantities: { mean: (number | null)[], low?: (number | null)[], high?: (number | null)[] }[] }} Course
 * @typedef {{ key: string, title: string, unit: number }} Quantity
 */

/** One of the two shown traces. */
class Shown {
  /** @param {number} place 0 or 1 @param {() => void} changed @param {() => void} chosen */
  constructor(place, changed, chosen) {
    this.place = place;
    this.changed = changed;
    /** @type {number | null} */
    this.file = null;
    /** @type {TraceState | null} */
    this.trace = null;
    /** @type {Course | null} */
    this.course = null;
    this.stop = () => {};
    this.files = element("select", { change: () => this.follow(this.files.value === "" ? null : Number(this.files.value)) });
    this.numbers = element("select", { change: () => { this.course = null; chosen(); } });
    this.numbersLabel = element("label", { hidden: true }, "Connection", this.numbers);
    this.state = element("p", { class: "live-state", "aria-live": "polite" });
    this.figures = element("p", { class: "soft live-figures" });
    this.share = element("progress", { max: "100", "aria-label": "Progress of the transfer" });
    this.left = element("span", {});
    this.progress = element("p", { class: "live-progress", hidden: true }, this.share, this.left);
    this.notices = element("ul", { class: "live-notices" });
    this.changes = element("ol", { class: "live-changes" });
    this.blocks = element("div");
  }

  /** Follows a file from now on. @param {number | null} file */
  follow(file) {
    this.stop();
    this.file = file;
    this.trace = this.course = null;
    this.numbers.replaceChildren();
    this.stop = file === null ? () => {} : watch(`live/${file}/events`, (/** @type {TraceState} */ trace) => {
      if (this.trace && this.trace.anew !== trace.anew) this.course = null;
      this.trace = trace;
      this.changed();
    });
    this.files.value = file === null ? "" : String(file);
    this.changed();
  }

  /** Returns the shown connection: the chosen one while it exists, or the last one. @returns {Connection | null} */
  connection() {
    const all = this.trace?.connections ?? [];
    return all.find((each) => String(each.number) === this.numbers.value) ?? all[all.length - 1] ?? null;
  }

  /** Requests the course in view. @param {[number, number]} view @param {number} most */
  async refresh([from, to], most) {
    const [file, connection] = [this.file, this.connection()];
    if (file === null || !connection) return;
    const query = new URLSearchParams({ connection: String(connection.number), from: String(from), to: String(to), most: String(most) });
    const course = await (await ask(`live/${file}/course?${query}`)).json();
    if (this.file === file && this.connection()?.number === connection.number) this.course = course;
  }
}

/** The room. @param {HTMLElement} section */
export function start(section) {
  new Room(section).look();
}

class Room {
  /** @type {Quantity[]} */
  quantities = [];
  /** @type {[number, number] | null} */
  view = null;
  /** @type {number | null} */
  cursor = null;
  /** The time of the last event of the last update. @type {number | undefined} */
  last = undefined;
  isAsking = false;
  isDue = false;
  /** Whether the shown transfer and its lab have ended. */
  isOver = false;
  /** Whether a second trace was already selected automatically. */
  hasBeenTwo = false;

  // The parts of the page that updates change.
  shown = [0, 1].map((place) => new Shown(place, () => this.changed(), () => this.changed()));
  trouble = element("p", { class: "bad", role: "alert", hidden: true });
  offered = element("select", {});
  follow = element("form", { class: "row", submit: (event) => this.wish(event) },
    element("label", {}, "Another trace in the lab's directory", this.offered), element("button", {}, "Follow"));
  empty = element("div", {},
    element("p", {}, "No trace open. To create one, run:"),
    element("pre", {}, "# opens this page for a transfer\ndownpour cp --web FILE HOST:\n# writes a trace, and follows it\ndownpour cp --qlog run.qlog FILE HOST:\ndownpour-lab web --follow run.qlog"));
  keep = element("input", { type: "checkbox", checked: true });
  range = element("output", { class: "soft" });
  svg = element("a", { download: "series.svg" }, "SVG");
  csv = element("a", { download: "series.csv" }, "CSV");
  area = element("div", {
    class: "live-panels", tabindex: "0", role: "group",
    "aria-label": "Charts: arrow keys move, plus and minus zoom, Home: whole range, End: latest",
  });
  panels = PANELS.map(([title, keys, names]) => {
    const canvas = element("canvas", { role: "img", "aria-label": title });
    const lines = names.length > 1 ? `: ${names[0]}, ${names[1]} dashed` : `: ${names[0]}`;
    this.area.append(element("figure", {}, element("figcaption", {}, element("b", {}, title), element("span", { class: "soft" }, lines)), canvas));
    return { title, keys, canvas };
  });
  table = element("table", {});
  choice = element("div", { class: "row" });
  body = element("div", { hidden: true });

  /** @param {HTMLElement} section */
  constructor(section) {
    this.section = section;
    this.build();
    const redraw = () => this.paint();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    new ResizeObserver(() => { this.paint(); this.refresh(); }).observe(this.area);
  }

  build() {
    const [first, second] = this.shown;
    const axis = {
      get: () => this.shownView(),
      set: (/** @type {[number, number]} */ view) => this.look_at(view),
      all: () => this.look_at(null),
      newest: () => this.newest(),
      point: (/** @type {number | null} */ time) => this.point(time),
    };
    interact(this.area, axis);
    const head = (/** @type {Shown} */ shown) => element("div", { class: "live-trace" },
      shown.state, shown.progress, shown.figures, shown.notices);
    const details = element("div", { class: "live-details" },
      element("div", {}, element("h3", {}, "Values"), element("div", { class: "wide" }, this.table)),
      element("div", {}, element("h3", {}, "Blocks"),
        element("p", { class: "soft" }, "Solid: done. Hollow: open. Crossed: being repaired."), first.blocks, second.blocks),
      element("div", {}, element("h3", {}, "Actions of the controller"), first.changes, second.changes));
    this.body.append(element("div", { class: "live-traces" }, head(first), head(second)), this.tools(axis.all), this.area, details);
    this.choice.append(
      element("label", {}, "Trace", first.files), first.numbersLabel,
      element("label", {}, "Beside it", second.files), second.numbersLabel);
    this.section.append(element("h2", {}, "A connection over time"), this.trouble, this.empty, this.choice, this.follow, this.body);
  }

  /** The buttons for the axis and for saving. @param {() => void} all */
  tools(all) {
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ click) =>
      element("button", { type: "button", "aria-label": label, title: label, click }, text);
    const zoom = (/** @type {number} */ times) => this.look_at(zoomed(this.shownView(), times));
    const pan = (/** @type {number} */ share) => {
      const [from, to] = this.shownView();
      this.look_at([from + share * (to - from), to + share * (to - from)]);
    };
    return element("div", { class: "row live-tools" },
      button("+", "Zoom in", () => zoom(0.7)), button("−", "Zoom out", () => zoom(1 / 0.7)),
      button("◀", "Earlier", () => pan(-0.5)), button("▶", "Later", () => pan(0.5)),
      button("All", "The whole time", all),
      element("label", {}, this.keep, "Follow"), this.range,
      element("span", { class: "live-save" }, "Save the view: ", this.svg, " ", this.csv));
  }

  /** Polls the list of files. */
  async look() {
    if (this.isOver) return;
    if (!this.section.hidden && !document.hidden) await this.list().catch((error) => this.report(error));
    setTimeout(() => this.look(), LOOK);
  }

  async list() {
    const { followed, offered, quantities } = await (await ask("live/traces")).json();
    this.report(null);
    this.quantities = quantities;
    /** @param {HTMLSelectElement} select @param {[string, string][]} options */
    const fill = (select, options) => {
      const now = [...select.options].map((option) => option.value + option.text).join("\n");
      if (now === options.map(([value, text]) => value + text).join("\n")) return;
      const value = select.value;
      select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
      select.value = options.some(([each]) => each === value) ? value : (options[0]?.[0] ?? "");
    };
    const files = /** @type {string[]} */ (followed).map((name, id) => /** @type {[string, string]} */ ([String(id), name]));
    const [first, second] = this.shown;
    fill(first.files, files);
    fill(second.files, [["", "nothing"], ...files]);
    fill(this.offered, /** @type {string[]} */ (offered).map((name) => [name, name]));
    this.follow.hidden = offered.length === 0;
    this.choice.hidden = this.body.hidden = files.length === 0;
    this.empty.hidden = files.length > 0;
    if (first.file === null && files.length > 0) first.follow(0);
    if (second.file === null && files.length > 1 && !this.hasBeenTwo) {
      this.hasBeenTwo = true;
      second.follow(1);
    }
  }

  /** Follows the chosen file. @param {Event} event */
  async wish(event) {
    event.preventDefault();
    try {
      const id = await (await ask("live/follow", { json: { name: this.offered.value } })).json();
      const place = this.shown[0].file === null || this.shown[0].file === id ? 0 : 1;
      this.hasBeenTwo = true;
      await this.list();
      if (this.shown[place].file !== id) this.shown[place].follow(id);
    } catch (error) {
      this.report(error);
    }
  }

  /** Shows an error. @param {unknown} error */
  report(error) {
    // With a followed file, the page itself reports that the lab has stopped.
    const isSaid = this.shown[0].file !== null && error instanceof Error && error.message.startsWith("The lab has stopped");
    this.trouble.hidden = error === null || isSaid;
    this.trouble.textContent = error instanceof Error ? error.message : "";
  }

  /** Returns the time of the last event of the shown traces. */
  end() {
    return Math.max(0, ...this.shown.map((shown) => shown.connection()?.seconds ?? 0));
  }

  /** @returns {[number, number]} */
  shownView() {
    return this.view ?? within([0, this.end() || 1], this.end() || 1);
  }

  /** Shows an interval, or all. @param {[number, number] | null} view */
  look_at(view) {
    const end = this.end() || 1;
    const kept = view && within(view, end);
    this.view = kept && (kept[0] > 0 || kept[1] < end) ? kept : null;
    this.paint();
    this.refresh();
  }

  newest() {
    const [from, to] = this.shownView();
    this.look_at([this.end() - (to - from), this.end()]);
  }

  /** Points at a time. @param {number | null} time */
  point(time) {
    this.cursor = time;
    this.paint();
    this.values();
  }

  /** Updates the page after an event or a choice. */
  changed() {
    const end = this.end();
    if (this.view && this.keep.checked && this.last !== undefined && this.view[1] >= this.last) {
      const span = this.view[1] - this.view[0];
      this.view = within([end - span, end], end);
    }
    this.last = end;
    this.shown.forEach((shown) => this.head(shown));
    this.say();
    this.values();
    this.links();
    const trace = this.shown.flatMap((shown) => shown.trace ?? []);
    if (trace.length > 0 && trace.every(({ is_over }) => is_over)) this.finish();
    else this.refresh();
  }

  /** Fetches the last data of a lab that ends with its transfer: the full courses, and the files to save. */
  async finish() {
    if (this.isOver) return;
    this.isOver = true;
    const kept = async (/** @type {HTMLAnchorElement} */ link) => {
      if (link.hasAttribute("href")) link.href = URL.createObjectURL(await (await ask(link.href)).blob());
    };
    const whole = /** @type {[number, number]} */ ([0, this.end() || 1]);
    try {
      await Promise.all([kept(this.svg), kept(this.csv), ...this.shown.map((shown) => {
        shown.stop();
        return shown.refresh(whole, MOST_STEPS);
      })]);
    } catch (error) {
      this.report(error);
    }
    this.paint();
  }

  /** Requests the courses in view at a limited rate, and paints them. */
  async refresh() {
    if (this.isOver) return;
    if (this.isAsking || this.section.hidden) {
      this.isDue = true;
      return;
    }
    this.isAsking = true;
    this.isDue = false;
    const most = Math.min(MOST_STEPS, Math.ceil(plotWidth(this.panels[0].canvas)));
    try {
      await Promise.all(this.shown.map((shown) => shown.refresh(this.shownView(), most)));
      this.paint();
    } catch (error) {
      this.report(error);
    }
    await new Promise((done) => { setTimeout(done, PAUSE); });
    this.isAsking = false;
    if (this.isDue) this.refresh();
  }

  /** Displays and returns the interval in view. */
  say() {
    const view = this.shownView();
    const seconds = (/** @type {number} */ time) => `${Number(time.toPrecision(4))} s`;
    this.range.textContent = `${seconds(view[0])} to ${seconds(view[1])}`;
    return view;
  }

  paint() {
    const view = this.say();
    for (const { keys, canvas } of this.panels) {
      const lines = [];
      for (const [rank, key] of keys.entries()) {
        const index = this.quantities.findIndex((quantity) => quantity.key === key);
        for (const { course, place } of this.shown) {
          const values = course?.quantities[index];
          if (course && values) lines.push({ times: course.times, ...values, unit: this.quantities[index].unit, trace: place, isDashed: rank > 0 });
        }
      }
      // The dashed ones are behind.
      draw(canvas, lines.reverse(), view, this.cursor);
    }
    this.shown.forEach((shown) => this.paintBlocks(shown));
    this.links();
  }

  /** Updates the links for saving. */
  links() {
    if (this.isOver) return;
    const traces = this.shown.flatMap((shown) => {
      const connection = shown.connection();
      return shown.file !== null && connection ? [`${shown.file}.${connection.number}`] : [];
    });
    const query = new URLSearchParams({ traces: traces.join(",") });
    if (this.view) this.view.forEach((time, at) => query.set(at ? "to" : "from", String(time)));
    for (const [kind, link] of Object.entries({ svg: this.svg, csv: this.csv })) {
      if (traces.length > 0) link.href = `live/export.${kind}?${query}`;
      else link.removeAttribute("href");
    }
  }

  /** Updates the texts above the charts. @param {Shown} shown */
  head(shown) {
    const { trace, place } = shown;
    const connection = shown.connection();
    const parent = /** @type {HTMLElement} */ (shown.state.parentElement);
    parent.hidden = !trace;
    shown.blocks.hidden = shown.changes.hidden = !connection;
    const numbers = (trace?.connections ?? []).map((each) => each.number);
    const options = [["", "the last"], ...numbers.map((number) => [String(number), `${number + 1}`])];
    if (options.length !== shown.numbers.options.length || shown.numbers.options[1]?.value !== options[1]?.[0]) {
      const value = shown.numbers.value;
      shown.numbers.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
      shown.numbers.value = options.some(([each]) => each === value) ? value : "";
    }
    shown.numbersLabel.hidden = numbers.length < 2;
    if (!trace) return;
    const parts = [connection?.doing, connection?.limit].filter((part) => part);
    let words = parts.length > 0 ? parts.join("; ") : connection ? "no data sent" : "no data read";
    if (connection?.is_closed) words = "connection ended";
    if (trace.is_over) words = "transfer ended; the page is no longer updated";
    said(shown.state, `${MARKERS[place]} ${trace.name}: ${words}`);
    shown.state.style.color = "";
    shown.state.style.borderLeftColor = COLOURS[place];
    const progress = connection?.progress ?? null;
    shown.progress.hidden = !progress;
    if (progress) {
      shown.share.value = progress.percent;
      said(shown.left, ` ${progress.words}`);
    }
    said(shown.figures, connection
      ? `${connection.controller ? `Controller ${connection.controller}. ` : ""}${count(connection.sent)} packets sent, ${count(connection.lost)} of them lost, ${count(connection.received)} received, in ${Number(connection.seconds.toPrecision(4))} s`
      : "");
    list(shown.notices, trace.notices);
    list(shown.changes, (connection?.changes ?? []).map(([time, words]) => `${MARKERS[place]} ${time.toFixed(2)} s: ${words}`));
    this.blocks(shown, connection);
  }

  /** Updates the table of values: at the cursor, or the last ones. */
  values() {
    const at = this.cursor;
    const names = this.shown.filter((shown) => shown.trace);
    const when = at === null ? "the last" : `at ${Number(at.toPrecision(4))} s`;
    const value = (/** @type {Shown} */ shown, /** @type {number} */ index) => {
      if (at === null || !shown.course) return shown.connection()?.last[index] ?? null;
      const after = shown.course.times.findIndex((time) => time >= at);
      return after < 0 ? null : shown.course.quantities[index].mean[after];
    };
    const cell = (/** @type {number | null} */ value, /** @type {Quantity} */ { unit, key }) =>
      value === null ? element("td", {}, "–") : element("td", {}, element("data", { value: String(value), "data-key": key }, String(Number((value * unit).toPrecision(4)))));
    const rows = this.quantities.map((quantity, index) => element("tr", {},
      element("th", { scope: "row" }, quantity.title), ...names.map((shown) => cell(value(shown, index), quantity))));
    const heading = element("tr", {}, element("th", { scope: "col" }, `Quantity, ${when}`),
      ...names.map((shown) => element("th", { scope: "col" }, `${MARKERS[shown.place]} ${shown.trace?.name}`)));
    this.table.replaceChildren(element("thead", {}, heading), element("tbody", {}, ...rows));
  }

  /** Updates the maps of blocks. @param {Shown} shown @param {Connection | null} connection */
  blocks(shown, connection) {
    const flows = (connection?.flows ?? []).filter((flow) => flow.begun > 0);
    while (shown.blocks.children.length > flows.length) shown.blocks.lastElementChild?.remove();
    while (shown.blocks.children.length < flows.length) {
      shown.blocks.append(element("figure", {}, element("figcaption", {}), element("canvas", { class: "live-blocks", role: "img" })));
    }
    for (const [at, flow] of flows.entries()) {
      const [caption, canvas] = shown.blocks.children[at].children;
      const length = flow.length === null ? "a stream" : `${count(flow.length)} bytes`;
      const repaired = flow.repaired > 0 ? `, ${count(flow.repaired)} of them being repaired` : "";
      const cells = flow.per_cell > 1 ? `; each cell is ${flow.per_cell} blocks` : "";
      said(/** @type {HTMLElement} */ (caption), `${MARKERS[shown.place]} Flow ${flow.id}, ${length}, ${flow.is_received ? "received" : "sent"}: ${count(flow.done)} ${flow.done === 1 ? "block" : "blocks"} done, ${count(flow.open)} open${repaired}${cells}`);
      canvas.setAttribute("aria-label", /** @type {string} */ (caption.textContent));
    }
    this.paintBlocks(shown);
  }

  /** @param {Shown} shown */
  paintBlocks(shown) {
    const flows = (shown.connection()?.flows ?? []).filter((flow) => flow.begun > 0);
    for (const [at, figure] of [...shown.blocks.children].entries()) {
      const canvas = /** @type {HTMLCanvasElement} */ (figure.lastElementChild);
      if (flows[at] && canvas.clientWidth) paintMap(canvas, flows[at].map, COLOURS[shown.place]);
    }
  }
}

/**
 * Paints a map of blocks; the shape of a cell is its state.
 * @param {HTMLCanvasElement} canvas
 * @param {string} map
 * @param {string} colour
 */
function paintMap(canvas, map, colour) {
  const cell = map.length <= FEW ? CELLS[0] : CELLS[1];
  const columns = Math.max(1, Math.floor(canvas.clientWidth / cell));
  canvas.style.height = `${Math.ceil(map.length / columns) * cell}px`;
  const context = sharp(canvas);
  const { ink } = inks(canvas);
  const size = cell - 3;
  context.fillStyle = context.strokeStyle = colour;
  context.lineWidth = 1.5;
  for (let at = 0; at < map.length; at += 1) {
    const [x, y] = [(at % columns) * cell + 1.5, Math.floor(at / columns) * cell + 1.5];
    if (map[at] === "d") {
      context.fillRect(x, y, size, size);
      continue;
    }
    context.strokeRect(x + 0.75, y + 0.75, size - 1.5, size - 1.5);
    if (map[at] !== "r") continue;
    context.strokeStyle = ink;
    context.beginPath();
    context.moveTo(x + 2, y + 2);
    context.lineTo(x + size - 2, y + size - 2);
    context.moveTo(x + size - 2, y + 2);
    context.lineTo(x + 2, y + size - 2);
    context.stroke();
    context.strokeStyle = colour;
  }
}

/** Sets a text only if it has changed, for screen readers. @param {HTMLElement} where @param {string} text */
function said(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

/** @param {HTMLElement} where @param {string[]} lines */
function list(where, lines) {
  if ([...where.children].map((child) => child.textContent).join("\n") === lines.join("\n")) return;
  where.replaceChildren(...lines.map((line) => element("li", {}, line)));
}

/** @param {number} number */
function count(number) {
  return number.toLocaleString("en");
}
