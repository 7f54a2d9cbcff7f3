// @ts-check
// Results as pictures and tables, with the runs behind each number; shared by Testing and Results.
import { table } from "./table.js";
import { ask, element } from "./wire.js";

/**
 * @typedef {{ value: number, is_bound: boolean }} Bound
 * @typedef {{ planned: number, runs: number, unfinished: number, invalid: number, mean: number | null, deviation: number | null,
 *   interval: [number, number] | null, median: Bound | null, min: Bound | null, max: Bound | null }} Numbers
 * @typedef {{ name: string, title: string, x: string, y: string, is_over_time: boolean, points: { label: string, x: number }[],
 *   rows: { name: string, style: number, cells: Numbers[] }[] }} Table
 * @typedef {{ index: number, id: string, label: string, system: string, seed: number, link: string, date: string, ended: string,
 *   value: Bound | null, is_valid: boolean, reasons: string[], made: string, is_stale: boolean, command?: string }} Run
 */

/**
 * A number in four digits.
 * @param {number} value
 */
export function number(value) {
  return String(Number(value.toPrecision(4)));
}

/** @param {Bound | null} bound */
const bounded = (bound) => (bound ? `${bound.is_bound ? "over " : ""}${number(bound.value)}` : "-");

/** @param {number} count @param {string} one @param {string} [many] */
export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** Returns the room, the settings and the plan in the address. */
export function place() {
  const [first, ...rest] = location.hash.slice(1).split("/");
  const [room, set = ""] = first.split("?");
  const query = new URLSearchParams(set);
  try {
    return { room, query, name: decodeURIComponent(rest.join("/")) || null };
  } catch {
    return { room, query, name: null };
  }
}

/** Pictures and tables of the sweeps of one plan, which may be growing. */
export class Sweeps {
  /** @type {{ table: string, picture: string, figure: HTMLElement, wide: HTMLElement, behind: HTMLElement }[]} */
  #shown = [];
  #name = "";

  /** @param {HTMLElement} target */
  constructor(target) {
    this.target = target;
  }

  /**
   * Shows these results; unchanged parts stay, and so does the reader's state.
   * @param {string} name
   * @param {Table[]} tables
   * @param {string[]} pictures
   */
  show(name, tables, pictures) {
    if (name !== this.#name || tables.length !== this.#shown.length) {
      this.#name = name;
      this.#shown = [];
      this.target.replaceChildren(...tables.map((table) => this.#section(table)));
    }
    tables.forEach((table, sweep) => {
      const shown = this.#shown[sweep];
      const text = JSON.stringify(table);
      if (shown.table !== text) keepFocus(shown.wide, () => shown.wide.replaceChildren(this.#table(table, sweep)));
      if (shown.picture !== pictures[sweep]) {
        keepFocus(shown.figure, () => shown.figure.replaceChildren(this.#picture(pictures[sweep], table, sweep)));
      }
      shown.table = text;
      shown.picture = pictures[sweep];
    });
  }

  /** @param {Table} table */
  #section(table) {
    const figure = element("figure");
    const wide = element("div", { class: "wide" });
    const behind = element("div", { class: "behind" });
    this.#shown.push({ table: "", picture: "", figure, wide, behind });
    return element("section", { class: "sweep" }, element("h3", {}, table.title), figure, wide, behind);
  }

  /**
   * @param {Table} of
   * @param {number} sweep
   */
  #table(of, sweep) {
    const columns = of.is_over_time ? [{ label: "all runs" }] : of.points;
    const rows = of.rows.map((row, at) => {
      const cells = row.cells.map((cell, point) => {
        const place = { sweep, row: at, point };
        const label = `Runs of ${row.name}, ${columns[point]?.label ?? ""}`;
        const open = () => this.#open(place, `${row.name}, ${columns[point]?.label ?? ""}`);
        return element("td", {}, element("button", { class: "cell", "aria-label": `${label}: ${spoken(cell)}`, "data-key": `${at} ${point}`, click: open }, ...lines(cell)));
      });
      return element("tr", {}, element("th", { scope: "row" }, row.name), ...cells);
    });
    const caption = of.is_over_time
      ? "No table for values over time: see the chart."
      : `${of.y}: mean of the runs that finished, ± half of its 95 % confidence interval (Student's t); s: standard deviation; n: runs in the mean, of those planned. In the median, unfinished runs are the longest.`;
    return table([of.x, ...columns.map((point) => point.label)], rows, { caption });
  }

  /**
   * A picture whose points open their runs, by click, or by arrow keys and Enter.
   * @param {string} text
   * @param {Table} table
   * @param {number} sweep
   */
  #picture(text, table, sweep) {
    const svg = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
    const marks = /** @type {SVGElement[]} */ ([...svg.querySelectorAll("[data-series]")]);
    // One stop for the Tab key for all points.
    marks.forEach((mark, at) => {
      mark.setAttribute("tabindex", at === 0 ? "0" : "-1");
      mark.setAttribute("role", "button");
      mark.setAttribute("aria-label", mark.querySelector("title")?.textContent ?? "");
      mark.dataset.key = `${mark.dataset.series} ${mark.dataset.x}`;
    });
    const open = (/** @type {Element} */ mark) => {
      const { series, x } = /** @type {SVGElement} */ (mark).dataset;
      const styles = (series ?? "").split(" ").map(Number);
      const row = table.rows.findIndex((row) => styles.includes(row.style));
      const point = table.is_over_time ? 0 : table.points.findIndex((point) => point.x === Number(x));
      if (row >= 0 && point >= 0) this.#open({ sweep, row, point }, mark.querySelector("title")?.textContent ?? "");
    };
    svg.addEventListener("click", (event) => {
      const mark = /** @type {Element} */ (event.target).closest("[data-series]");
      if (mark) open(mark);
    });
    svg.addEventListener("keydown", (event) => {
      const at = marks.indexOf(/** @type {SVGElement} */ (/** @type {Element} */ (event.target).closest("[data-series]")));
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key] ?? 0;
      if (at >= 0 && (event.key === "Enter" || event.key === " ")) open(marks[at]);
      else if (at >= 0 && step) marks[(at + step + marks.length) % marks.length].focus();
      else return;
      event.preventDefault();
    });
    return svg;
  }

  /**
   * Lists the runs at a position.
   * @param {{ sweep: number, row: number, point: number }} place
   * @param {string} title
   */
  async #open(place, title) {
    const query = new URLSearchParams({ name: this.#name, ...Object.fromEntries(Object.entries(place).map(([key, value]) => [key, String(value)])) });
    await behind(this.#shown[place.sweep].behind, this.#name, `Runs of ${title}`, `results/at?${query}`);
  }
}

/**
 * Rebuilds an element, and restores the focus.
 * @param {HTMLElement} target
 * @param {() => void} make
 */
function keepFocus(target, make) {
  const focused = /** @type {HTMLElement | null} */ (target.contains(document.activeElement) ? document.activeElement : null);
  const key = focused?.dataset.key;
  make();
  if (key) /** @type {HTMLElement | null} */ (target.querySelector(`[data-key="${CSS.escape(key)}"]`))?.focus({ preventScroll: true });
}

/**
 * The lines of a cell.
 * @param {Numbers} cell
 */
function lines(cell) {
  const span = (/** @type {string} */ kind, /** @type {string} */ text) => element("span", { class: kind }, text);
  const made = [];
  if (cell.mean !== null) {
    const half = cell.interval ? (cell.interval[1] - cell.interval[0]) / 2 : null;
    made.push(element("strong", {}, span("mean", number(cell.mean)), half === null ? "" : " ± ", half === null ? "" : span("interval", number(half))));
  } else if (cell.median) {
    made.push(element("strong", {}, "no mean"));
  }
  const deviation = cell.deviation === null ? [] : ["s ", span("deviation", number(cell.deviation)), ", "];
  made.push(element("small", {}, ...deviation, "n ", span("runs", `${cell.runs}/${cell.planned}`)));
  if (cell.median) {
    made.push(element("small", {}, "median ", span("median", bounded(cell.median)), ` (${bounded(cell.min)} to ${bounded(cell.max)})`));
  }
  if (cell.unfinished) made.push(element("small", { class: "bad" }, span("unfinished", String(cell.unfinished)), " not finished"));
  if (cell.invalid) made.push(element("small", { class: "bad" }, span("invalid", String(cell.invalid)), " invalid"));
  return made;
}

/** @param {Numbers} cell */
function spoken(cell) {
  const mean = cell.mean === null ? "no mean" : `mean ${number(cell.mean)}`;
  return `${mean} of ${cell.runs} of ${cell.planned} runs`;
}

/**
 * Fills an element with the runs behind a number, and scrolls to it.
 * @param {HTMLElement} target
 * @param {string} name of the plan
 * @param {string} title
 * @param {string} path that lists them
 */
export async function behind(target, name, title, path) {
  const close = element("button", { click: () => target.replaceChildren() }, "Close");
  const heading = element("h4", { tabindex: "-1" }, title);
  const say = (/** @type {(Node | string)[]} */ ...content) => target.replaceChildren(element("div", { class: "row" }, heading, close), ...content);
  try {
    const { runs, all } = await (await ask(path)).json();
    const more = all > runs.length ? ` The first ${runs.length} are listed.` : "";
    const said = all > 0 ? `${counted(all, "record")}.${more}` : "This number comes from the plan, not from runs.";
    say(element("p", { class: "soft" }, said), list(name, runs));
  } catch (error) {
    say(element("p", { class: "bad" }, String(/** @type {Error} */ (error).message)));
  }
  heading.focus({ preventScroll: true });
  target.scrollIntoView({ block: "nearest" });
}

/**
 * Runs, each of which unfolds to its full record.
 * @param {string} name of the plan
 * @param {Run[]} runs
 */
export function list(name, runs) {
  return element("ol", { class: "runs" }, ...runs.map((run) => element("li", {}, item(name, run))));
}

/**
 * @param {string} name
 * @param {Run} run
 */
function item(name, run) {
  const verdict = run.is_valid
    ? element("span", { class: "good" }, "valid")
    : element("span", { class: "bad" }, `invalid${run.reasons.length ? `: ${run.reasons.join("; ")}` : ""}`);
  const value = run.value ? ` = ${bounded(run.value)}` : "";
  const record = element("pre", {});
  const rows = /** @type {[string, string][]} */ ([
    ["id", run.id], ["case", run.label], ["link", run.link], ["ended", run.date], ["made by", run.made + (run.is_stale ? " (another build)" : "")],
    ["said", run.is_valid ? run.reasons.join("; ") : ""],
  ]).filter(([, text]) => text);
  const facts = element("dl", {}, ...rows.flatMap(([key, text]) => [element("dt", {}, key), element("dd", {}, text)]));
  const again = run.command ? [element("p", {}, "Repeat it: ", element("code", { class: "command" }, run.command))] : [];
  const fold = element("details", { "data-index": String(run.index) },
    element("summary", {}, `${run.system}, seed ${run.seed}: ${run.ended}${value}, `, verdict, run.is_stale ? element("span", { class: "soft" }, ", of another build") : ""),
    facts, ...again, record);
  fold.addEventListener("toggle", async () => {
    if (!fold.open || record.textContent) return;
    try {
      const answer = await ask(`results/record?${new URLSearchParams({ name, index: String(run.index) })}`);
      record.textContent = JSON.stringify(await answer.json(), null, 1);
    } catch (error) {
      record.textContent = String(/** @type {Error} */ (error).message);
    }
  });
  return fold;
}
