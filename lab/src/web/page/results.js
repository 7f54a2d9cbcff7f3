// @ts-check
// The room Results: all stored experiments, their verdicts, and the runs behind every number.
import { Sweeps, behind, counted, place } from "./measured.js";
import { Sortable, table } from "./table.js";
import { ask, element } from "./wire.js";

/**
 * @typedef {{ item: string, claim: string, measured: string, verdict: string, class: string, because: string, auto: string }} Stored
 * @typedef {{ name: string, title: string, has_results: boolean, verdicts: Stored[] }} Entry
 * @typedef {(string | { query: string, shown: string })[]} Text
 * @typedef {{ item: string, claim: string, system: string, measured: Text, verdict: string, class: string, because: Text, auto: Text | null }} Verdict
 * @typedef {{ name: string, title: string, plan: string, claims: { text: string, section: string }[], verdicts: Verdict[], text: Text[],
 *   unjudged: string | null, tables: import("./measured.js").Table[], pictures: string[], records: number, stale: number }} Opened
 */

const CLASSES = /** @type {[string, string][]} */ ([["reproduced", "reproduced"], ["in-kind", "in kind"], ["not", "not reproduced"], ["unmeasured", "not measured"]]);

/** @param {HTMLElement} section */
export async function start(section) {
  section.replaceChildren(element("p", {}, "Reading ..."));
  try {
    const { entries } = await (await ask("results/list")).json();
    new Results(section, entries).show();
  } catch (error) {
    section.replaceChildren(element("p", { class: "bad" }, String(/** @type {Error} */ (error).message)));
  }
}

class Results {
  /** @type {string | null} */
  #name = null;
  filter = element("input", { type: "search", id: "results-filter", input: () => this.#changed() });
  verdict = element("select", { id: "results-verdict", change: () => this.#changed() },
    ...[["", "any"], ...CLASSES].map(([value, text]) => element("option", { value }, text)));
  count = element("span", { class: "soft", "aria-live": "polite" });
  table = new Sortable("words", [
    { id: "experiment", name: "Experiment" }, { id: "item", name: "Item" },
    ...CLASSES.map(([id, name]) => ({ id, name, isNumber: true })), { id: "results", name: "Results" },
  ], () => this.#changed());
  claims = new Sortable("words", [
    { id: "item", name: "Item" }, { id: "claim", name: "Claim" }, { id: "measured", name: "Result of its own system" },
    { id: "verdict", name: "Verdict" }, { id: "auto", name: "auto, without and with a fixed rate" },
  ], () => this.#changed());
  headlines = element("div", {}, element("h2", {}, "Headline claims"), element("div", { class: "wide" }, this.claims.element));
  all = element("div", { id: "results-all" },
    element("div", { class: "row" }, element("label", {}, "Filter", this.filter), element("label", {}, "Verdict", this.verdict), this.count),
    this.headlines, element("h2", {}, "Experiments"), element("div", { class: "wide" }, this.table.element));
  one = element("div", { id: "results-one" });

  /**
   * @param {HTMLElement} section
   * @param {Entry[]} entries
   */
  constructor(section, entries) {
    this.entries = entries;
    section.replaceChildren(this.all, this.one);
    addEventListener("hashchange", () => this.show());
  }

  /** Returns the address of the list with filter and order. */
  #address() {
    const all = { text: this.filter.value, verdict: this.verdict.value, sort: this.table.sort, claims: this.claims.sort };
    const query = new URLSearchParams(Object.entries(all).filter(([, value]) => value)).toString();
    return query ? `#results?${query}` : "#results";
  }

  /** Puts the reader's filter and order into the address. */
  #changed() {
    history.replaceState(null, "", this.#address());
    this.#list();
  }

  /** Shows the experiment in the address, or all. */
  show() {
    const { room, query, name } = place();
    if (room !== "results") return;
    this.all.hidden = name !== null;
    this.one.hidden = name === null;
    if (name !== this.#name && name) this.#open(name);
    this.#name = name;
    if (name !== null) return;
    this.filter.value = query.get("text") ?? "";
    const verdict = query.get("verdict") ?? "";
    this.verdict.value = CLASSES.some(([kind]) => kind === verdict) ? verdict : "";
    this.table.sort = query.get("sort") ?? "";
    this.claims.sort = query.get("claims") ?? "";
    this.#list();
  }

  /** Lists the experiments with the words of the filter and the verdict. */
  #list() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (/** @type {...string} */ ...texts) => words.every((word) => texts.some((text) => text.toLowerCase().includes(word)));
    const isWanted = (/** @type {Stored} */ of) => !this.verdict.value || of.class === this.verdict.value;
    const said = (/** @type {Stored} */ of) => [of.item, of.claim, of.measured, of.verdict];
    const shown = this.entries.filter((entry) => matches(entry.name, entry.title, ...entry.verdicts.flatMap(said))
      && (!this.verdict.value || entry.verdicts.some(isWanted)));
    this.count.textContent = `${shown.length} of ${counted(this.entries.length, "experiment")}`;
    this.table.show(shown.map(experiment));
    const claims = this.entries.flatMap((entry) => entry.verdicts
      .filter((verdict) => verdict.auto && isWanted(verdict) && matches(entry.name, entry.title, ...said(verdict), verdict.auto))
      .map((verdict) => claim(entry, verdict)));
    this.headlines.hidden = claims.length === 0;
    this.claims.show(claims);
  }

  /** @param {string} name */
  async #open(name) {
    this.one.replaceChildren(element("p", {}, `Reading ${name} ...`));
    try {
      const opened = await (await ask(`results/open?${new URLSearchParams({ name })}`)).json();
      if (this.#name === name) this.#show(opened);
    } catch (error) {
      this.one.replaceChildren(element("p", {}, element("a", { href: this.#address() }, "All experiments")), element("p", { class: "bad" }, String(/** @type {Error} */ (error).message)));
    }
  }

  /** @param {Opened} opened */
  #show(opened) {
    const runs = element("div", { class: "behind" });
    const text = (/** @type {Text | null} */ pieces) => (pieces ?? []).map((piece) => typeof piece === "string" ? piece
      : element("button", { class: "figure", title: piece.query, click: () => this.#behind(opened.name, piece, runs) }, piece.shown));
    const verdicts = opened.verdicts.map((verdict) => element("tr", {},
      element("td", {}, verdict.item),
      element("td", {}, verdict.claim),
      element("td", {}, ...text(verdict.measured), element("small", {}, verdict.system), ...(verdict.auto ? [element("p", {}, "auto: ", ...text(verdict.auto))] : [])),
      element("td", { class: verdict.class }, verdict.verdict, element("p", {}, ...text(verdict.because)))));
    const judged = verdicts.length
      ? [element("div", { class: "wide" }, table(["Item", "Claim", "Measured", "Verdict"], verdicts, { kind: "words" })), runs]
      : [];
    const claims = verdicts.length ? [] : opened.claims.map((claim) => element("blockquote", {}, claim.text, element("small", {}, ` (${claim.section})`)));
    const stale = opened.stale ? `, ${counted(opened.stale, "case")} of another build` : "";
    const sweeps = element("div", {});
    this.one.replaceChildren(
      element("p", {}, element("a", { href: this.#address() }, "All experiments"), ", ", element("a", { href: `#testing/${encodeURI(opened.name)}` }, "open in Testing")),
      element("h2", { tabindex: "-1" }, opened.title),
      element("p", { class: "soft" }, `${opened.name}: ${counted(opened.records, "record")}${stale}. `, element("code", {}, `downpour-lab run ${opened.plan}`)),
      ...(opened.unjudged ? [element("p", { class: "bad" }, opened.unjudged)] : []),
      ...claims, ...judged, ...opened.text.map((paragraph) => element("p", {}, ...text(paragraph))), sweeps);
    new Sweeps(sweeps).show(opened.name, opened.tables, opened.pictures);
    scrollTo(0, 0);
  }

  /**
   * Lists the runs of an expression.
   * @param {string} name
   * @param {{ query: string, shown: string }} piece
   * @param {HTMLElement} target
   */
  async #behind(name, piece, target) {
    await behind(target, name, `Runs of ${piece.query} = ${piece.shown}`, `results/behind?${new URLSearchParams({ name, query: piece.query })}`);
  }
}

/** The row of an experiment. @param {Entry} entry @returns {import("./table.js").Sorted} */
function experiment(entry) {
  const counts = CLASSES.map(([kind]) => entry.verdicts.filter((verdict) => verdict.class === kind).length);
  const items = [...new Set(entry.verdicts.map((verdict) => verdict.item).filter(Boolean))].join(", ");
  const results = entry.has_results ? "" : "not run";
  const row = element("tr", {},
    element("td", {}, link(entry.name), element("small", {}, entry.title)),
    element("td", {}, items),
    ...counts.map((count, at) => element("td", { class: `number ${count ? CLASSES[at][0] : ""}` }, count ? String(count) : "")),
    element("td", {}, results));
  return { row, keys: [entry.name, items, ...counts, results] };
}

/**
 * The row of a claim for which the documents are known, with the result of `auto`.
 * @param {Entry} entry
 * @param {Stored} verdict
 * @returns {import("./table.js").Sorted}
 */
function claim(entry, verdict) {
  const item = verdict.item || entry.name;
  const row = element("tr", {},
    element("td", {}, link(entry.name, item)), element("td", {}, verdict.claim), element("td", {}, verdict.measured),
    element("td", { class: verdict.class }, verdict.verdict), element("td", {}, verdict.auto));
  return { row, keys: [item, verdict.claim, verdict.measured, CLASSES.findIndex(([kind]) => kind === verdict.class), verdict.auto] };
}

/** @param {string} name @param {string} [text] */
function link(name, text = name) {
  return element("a", { href: `#results/${encodeURI(name)}` }, text);
}
