// @ts-check
// The room Testing: a plan is made or opened, run, and its runs are followed.
import { Sweeps, counted, list, place } from "./measured.js";
import { PlanForm } from "./form.js";
import { ask, element, time, watch } from "./wire.js";

/**
 * The known duration of a plan, in seconds.
 * @typedef {{ least: number | null, most: number | null, about: number | null, needsQuiet?: boolean }} Outlook
 * @typedef {Outlook & { name: string, title: string, isOwn: boolean, stage: string, says: string, said: string[], settled: number,
 *   total: number, left: number | null, records: number, tables: import("./measured.js").Table[], pictures: string[],
 *   runs: import("./measured.js").Run[] }} State
 */

/** The pause after a change of a plan's text before it is checked. */
const PAUSE = 400;

/** @param {HTMLElement} section */
export async function start(section) {
  try {
    const choices = await (await ask("testing/choices")).json();
    new Testing(section, choices).show();
  } catch (error) {
    section.replaceChildren(element("p", { class: "bad" }, String(/** @type {Error} */ (error).message)));
  }
}

class Testing {
  /** The experiment or topology in whose directory the plan's topologies are. @type {string | null} */
  #beside = null;
  /** The results whose plan the text replaces. @type {string | null} */
  #again = null;
  #pause = 0;
  /** The number of the last requested check. */
  #asked = 0;

  /**
   * @param {HTMLElement} section
   * @param {import("./plan.js").Choices} choices
   */
  constructor(section, choices) {
    this.form = new PlanForm(choices, () => this.#formed());
    this.text = element("textarea", { rows: "24", spellcheck: "false", id: "plan-text", input: () => this.#typed() });
    this.said = element("p", { id: "plan-check", "aria-live": "polite" });
    this.startButton = element("button", { class: "main", click: () => this.#start() }, "Start");
    const most = String(choices.cores);
    this.jobs = element("input", { type: "number", min: "1", max: most, value: "1", id: "plan-jobs" });
    this.open = element("input", { list: "plan-books", id: "plan-open", placeholder: "experiments/... or lab-results/..." });
    this.run = new RunView(element("div", { id: "run" }), (name) => this.#use(name));
    const experiments = element("datalist", { id: "plan-books" }, ...choices.experiments.map((experiment) => element("option", { value: experiment.name })));
    const open = element("form", { class: "row", submit: (/** @type {Event} */ event) => { event.preventDefault(); this.#view(this.open.value.trim()); } },
      element("label", { class: "open" }, "Open a plan or results", this.open), experiments, element("button", {}, "Open"));
    this.maker = element("details", { id: "plan", open: true }, element("summary", {}, "Make a plan"),
      element("div", { class: "columns" }, this.form.element, this.#editor()));
    // Also runs of an ended lab, and runs started in a terminal.
    const runs = choices.experiments.filter((experiment) => experiment.isRunning).map((experiment) => element("li", {}, element("a", { href: `#testing/${encodeURI(experiment.name)}` }, experiment.name)));
    const running = element("div", { id: "plan-running", hidden: runs.length === 0 }, "Running when this page was loaded:", element("ul", {}, ...runs));
    section.replaceChildren(running, open, this.maker, this.run.element);
    addEventListener("hashchange", () => this.show());
    this.#formed();
  }

  #editor() {
    const again = element("button", { click: () => this.#formed() }, "Update text from form");
    const save = element("button", { click: () => this.#save() }, "Save as a file");
    return element("div", {},
      element("label", { for: "plan-text" }, "The plan"), this.text, this.said,
      element("div", { class: "row" }, this.startButton, element("label", {}, "runs at a time", this.jobs), save, again),
      element("p", { class: "soft" }, "Results go to lab-results/NAME under the directory where downpour-lab was started."));
  }

  /** Shows the run in the address, if there is one. */
  show() {
    const { room, name } = place();
    if (room === "testing") this.run.watch(name);
  }

  /** @param {string} name */
  #view(name) {
    if (!name) return;
    this.maker.open = false;
    if (place().name === name) this.show();
    else location.hash = `testing/${encodeURI(name)}`;
  }

  /** Replaces the text after a change of the form. */
  #formed() {
    const { text, beside } = this.form.plan();
    this.text.value = text;
    this.#beside = beside;
    this.#again = null;
    this.#check();
  }

  #typed() {
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.#check(), PAUSE);
  }

  /** @param {boolean} [again] */
  #asks(again = false) {
    return { text: this.text.value, beside: this.#beside, jobs: Number(this.jobs.value) || 1, again };
  }

  async #check() {
    clearTimeout(this.#pause);
    const asked = ++this.#asked;
    const say = (/** @type {string} */ kind, /** @type {string} */ words) => {
      if (asked !== this.#asked) return;
      this.said.className = kind;
      this.said.textContent = words;
    };
    try {
      const found = await (await ask("testing/check", { json: this.#asks() })).json();
      const lacking = found.lacking.length ? ` Skipped: ${found.lacking.join("; ")}.` : "";
      const exists = found.isThere && this.#again !== found.name ? ` Results of this name exist: open ${found.name}, or rename the plan.` : "";
      say(lacking || exists ? "bad" : "good", `${counted(found.runs, "run")}${lasts(found)}.${lacking}${exists}`);
    } catch (error) {
      say("bad", String(/** @type {Error} */ (error).message));
    }
  }

  async #start() {
    this.startButton.disabled = true;
    // Its answer counts, and not that of an earlier check.
    clearTimeout(this.#pause);
    this.#asked++;
    try {
      const name = this.#again;
      const found = name ? await (await ask("testing/check", { json: this.#asks() })).json() : null;
      const { name: begun } = await (await ask("testing/start", { json: this.#asks(found?.name === name && name !== null) })).json();
      this.#view(begun);
    } catch (error) {
      this.said.className = "bad";
      this.said.textContent = String(/** @type {Error} */ (error).message);
    } finally {
      this.startButton.disabled = false;
    }
  }

  #save() {
    const link = element("a", { download: "plan.toml", href: URL.createObjectURL(new Blob([this.text.value], { type: "application/toml" })) });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  /**
   * Loads the text of a stored plan.
   * @param {string} name
   */
  async #use(name) {
    const plan = await (await ask(`testing/plan?${new URLSearchParams({ name })}`)).json();
    this.text.value = plan.text;
    this.#beside = plan.name;
    this.#again = plan.isOwn ? plan.name : null;
    this.maker.open = true;
    this.maker.scrollIntoView();
    this.text.focus();
    await this.#check();
  }
}

/** Returns the duration of a plan, in words. @param {Outlook} outlook */
function lasts({ least, most, about, needsQuiet }) {
  const from = least === null ? "" : ` at least ${time(least)},`;
  if (about !== null) return `, about ${time(about)}`;
  if (most !== null) return `,${from} at most ${time(most)}, if every run lasts to its cap`;
  return needsQuiet ? "" : ", in virtual time; duration known after the first";
}

/** A current run, or stored results. */
class RunView {
  /** @type {string | null} */
  #name = null;
  /** @type {(() => void) | null} */
  #leave = null;

  /**
   * @param {HTMLElement} target
   * @param {(name: string) => Promise<void>} use the text of its plan
   */
  constructor(target, use) {
    this.element = target;
    this.title = element("h2", {});
    this.stage = element("p", { id: "run-stage", "aria-live": "polite" });
    this.bar = element("progress", { "aria-label": "Completed cases" });
    this.refused = element("p", { class: "bad", role: "alert" });
    this.more = element("input", { type: "number", min: "1", max: "1000", value: "5", id: "run-more" });
    this.jobs = element("input", { type: "number", min: "1", max: "64", value: "1", id: "run-jobs" });
    const act = (/** @type {string} */ path, /** @type {() => object} */ more) => async () => {
      this.refused.textContent = "";
      try {
        await ask(`testing/${path}`, { json: { name: this.#name, jobs: Number(this.jobs.value) || 1, ...more() } });
      } catch (error) {
        this.refused.textContent = String(/** @type {Error} */ (error).message);
      }
    };
    this.stop = element("button", { click: act("stop", () => ({})) }, "Stop");
    this.goOn = element("button", { class: "main", click: act("more", () => ({})) }, "Continue");
    this.add = element("button", { click: act("more", () => ({ more: Number(this.more.value) || 1 })) }, "Add");
    this.own = element("span", { class: "row" }, this.goOn, this.add, element("label", {}, this.more, "repeats"), element("label", {}, "runs at a time", this.jobs));
    const take = element("button", { click: () => this.#name && use(this.#name).catch((error) => { this.refused.textContent = error.message; }) }, "Edit its plan");
    this.actions = element("div", { class: "row" }, this.stop, this.own, take);
    this.heard = element("pre", { hidden: true });
    this.results = element("div", {});
    this.sweeps = new Sweeps(this.results);
    this.last = element("div", {});
    const runs = element("details", { id: "last-runs", open: true }, element("summary", {}, "The last runs"), this.last);
    this.body = [this.title, this.stage, this.bar, this.refused, this.actions, this.heard, runs, this.results];
  }

  /**
   * Watches the results of this name, or nothing.
   * @param {string | null} name
   */
  watch(name) {
    if (name === this.#name) return;
    this.#leave?.();
    this.#leave = null;
    this.#name = name;
    this.element.replaceChildren();
    if (!name) return;
    const path = `testing/watch?${new URLSearchParams({ name })}`;
    this.element.replaceChildren(element("p", {}, `Reading ${name} ...`));
    // An unknown name is refused once, and the reason replaces its results.
    ask(`testing/plan?${new URLSearchParams({ name })}`).then(() => {
      if (this.#name !== name) return;
      this.#leave = watch(path, (event) => this.#heard(event));
    }, (error) => this.element.replaceChildren(element("p", { class: "bad" }, error.message)));
  }

  /** @param {State | { name: string, unreadable: string, runs: boolean }} event */
  #heard(event) {
    if ("unreadable" in event) {
      // A run with unreadable results can still be stopped.
      this.stop.hidden = !event.runs;
      this.stop.textContent = "Stop";
      this.element.replaceChildren(element("p", { class: "bad" }, event.unreadable), this.stop, this.refused);
      return;
    }
    if (this.title.parentElement !== this.element) {
      this.actions.prepend(this.stop);
      this.element.replaceChildren(...this.body);
    }
    const isRunning = event.stage === "running" || event.stage === "stopping";
    this.title.textContent = event.title;
    this.stage.dataset.stage = event.stage;
    this.stage.className = event.stage === "failed" ? "bad" : "";
    this.stage.textContent = `${event.says} ${event.settled} of ${counted(event.total, "case")}${isRunning ? remaining(event) : ""}; ${counted(event.records, "record")} in ${event.name}.`;
    this.bar.max = event.total;
    this.bar.value = event.settled;
    this.stop.hidden = !isRunning;
    this.stop.textContent = event.stage === "stopping" ? "Stop now" : "Stop";
    this.own.hidden = isRunning || !event.isOwn;
    this.goOn.hidden = event.stage === "done";
    this.heard.hidden = event.stage !== "failed" || event.said.length === 0;
    this.heard.textContent = event.said.join("\n");
    this.sweeps.show(event.name, event.tables, event.pictures);
    this.#runs(event);
  }

  /** Lists the last runs, unless the reader has opened one of them. @param {State} event */
  #runs(event) {
    const isRead = this.last.querySelector("details[open]") !== null;
    if (!isRead) this.last.replaceChildren(event.runs.length ? list(event.name, event.runs) : element("p", { class: "soft" }, "None yet."));
  }
}

/** @param {State} event */
function remaining(event) {
  return event.left === null ? lasts(event) : `, about ${time(event.left)} left`;
}
