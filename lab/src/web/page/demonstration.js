// @ts-check
// The room Demonstration: the form, the playback, and saving.
import { ask, element, watch } from "./wire.js";
import { Show, colourSwitch } from "./demonstration_show.js";
import { fromFile, ours } from "./demonstration_picture.js";
import { video } from "./demonstration_video.js";

/** @typedef {import("./demonstration_show.js").Conditions} Conditions */

const ROOM = "demonstration";
const DEFAULT = ["auto", "linux-tcp", "tornado-transfer", "rc-udp"];
const SIZES = [[256, 192], [512, 384], [768, 576], [1024, 768]];
/** A change of a slider is sent at most this often, in milliseconds. */
const CHANGE = 150;

/** The sliders, adjustable during playback: key, name, unit, least, most, step, initial value. */
const SLIDERS = /** @type {[keyof Conditions, string, string, number, number, number, number][]} */ ([
  ["loss", "Loss, each direction", "%", 0, 30, 0.5, 5],
  ["delay", "Delay, each direction", "ms", 1, 300, 1, 40],
  ["rate", "Rate", "Mbit/s", 0.5, 50, 0.5, 5],
  ["speed", "Speed of time", "×", 0.1, 4, 0.1, 1],
]);

/** @param {HTMLElement} section */
export async function start(section) {
  try {
    new Room(section, await (await ask(`${ROOM}/systems`)).json());
  } catch (error) {
    section.append(element("p", { class: "bad", role: "alert" }, `${error instanceof Error ? error.message : error} Reload this page.`));
  }
}

class Room {
  /**
   * @param {HTMLElement} section
   * @param {import("./demonstration_show.js").System[]} systems
   */
  constructor(section, systems) {
    this.section = section;
    /** The shown demonstration; 0: none. */
    this.id = 0;
    /** @type {import("./demonstration_show.js").Happening[]} */
    this.events = [];
    this.unwatch = () => {};
    /** @type {Show | undefined} */
    this.show = undefined;
    this.isOver = true;
    this.isColoured = false;
    /** The time of the last change of a slider on this page. */
    this.changed = -Infinity;
    this.timer = 0;
    this.boxes = systems.map(({ id }) => element("input", { type: "checkbox", value: id, checked: DEFAULT.includes(id), change: () => this.choose() }));
    this.file = element("input", { type: "file", accept: "image/*", "aria-label": "Your picture" });
    this.size = element("select", {}, ...SIZES.map(([width, height], at) => element("option", { value: String(at) }, `${width} × ${height} (${(width * height * 3 / 1e6).toFixed(1)} MB)`)));
    this.size.value = "2";
    this.seed = element("input", { type: "number", min: "1", max: "999999", value: "1" });
    this.links = ["simulated", "emulated"].map((value) => element("input", { type: "radio", name: "links", value, checked: value === "simulated", change: () => this.chooseLinks() }));
    this.missing = element("p", { class: "soft", "aria-live": "polite" });
    this.go = element("button", { class: "main", type: "submit" }, "Start");
    this.problem = element("p", { class: "bad", role: "alert" });
    this.sliders = new Map(SLIDERS.map((slider) => [slider[0], this.slider(slider)]));
    this.place = element("div");
    this.shown = element("div", { hidden: true });
    this.halt = element("button", { type: "button", disabled: true, click: () => this.attempt(() => ask(`${ROOM}/runs/${this.id}/stop`, { method: "POST" })) }, "Stop");
    this.record = element("a", { class: "button", download: true }, "Save as a self-contained page");
    this.film = element("button", { type: "button", click: () => this.attempt(() => this.save()) }, "Save as a video");
    this.state = element("p", { class: "soft", "aria-live": "polite" });
    this.others = element("p", { class: "soft" });
    this.draw(systems);
    this.choose();
    this.chooseLinks();
    addEventListener("hashchange", () => this.follow());
    this.follow();
  }

  /** @param {import("./demonstration_show.js").System[]} systems */
  draw(systems) {
    const boxes = systems.map((system, at) =>
      element("label", { title: system.about }, this.boxes[at], system.label));
    const form = element(
      "form",
      { submit: (/** @type {Event} */ event) => { event.preventDefault(); this.attempt(() => this.begin()); } },
      element("fieldset", {}, element("legend", {}, "Systems, two to four at once"), element("div", { class: "row" }, ...boxes)),
      element(
        "fieldset",
        {},
        element("legend", {}, "Picture"),
        element(
          "div",
          { class: "row" },
          element("label", {}, "Your picture (optional)", this.file),
          element("label", {}, "Scaled to at most", this.size),
          element("label", { title: "Equal seeds lose the same packets" }, "Seed", this.seed),
        ),
      ),
      element(
        "fieldset",
        {},
        element("legend", {}, "Link (the same for all systems; adjustable while playing)"),
        element("div", { class: "row" }, ...[...this.sliders.values()].map(({ label }) => label)),
        element(
          "div",
          { class: "row" },
          element("label", {}, this.links[0], "Simulated: the engine in virtual time, and a model of Linux's TCP"),
          element("label", {}, this.links[1], "Emulated: the engine over real sockets, and this kernel's TCP, in real time"),
        ),
        this.missing,
      ),
      element("div", { class: "row" }, this.go, this.halt, this.state),
    );
    this.shown.append(
      colourSwitch((isColoured) => {
        this.isColoured = isColoured;
        this.show?.colour(isColoured);
      }),
      this.place,
      element("div", { class: "row" }, this.record, this.film),
    );
    this.section.append(
      element("h2", {}, "One picture, several systems, equal links"),
      element(
        "p",
        { class: "soft" },
        "Each system sends the picture's bytes over a link of its own. The links have equal parameters and equal seeds, and a queue of one bandwidth-delay product. A pixel appears when its receiver has it. For coded-only systems a bar shows how much of a block has arrived.",
      ),
      form,
      this.problem,
      this.shown,
      this.others,
    );
  }

  /** @param {[keyof Conditions, string, string, number, number, number, number]} slider */
  slider([key, name, unit, min, max, step, value]) {
    const output = element("output");
    const input = element("input", { type: "range", min: String(min), max: String(max), step: String(step), value: String(value), name: key });
    const show = () => {
      output.textContent = `${input.value} ${unit}`;
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => {
      show();
      this.change();
    });
    show();
    const label = element("label", { class: "slider" }, element("span", {}, name), input, output);
    return { label, input, show };
  }

  /** @returns {Conditions} */
  conditions() {
    return /** @type {Conditions} */ (Object.fromEntries([...this.sliders].map(([key, { input }]) => [key, Number(input.value)])));
  }

  /** Allows two to four systems. */
  choose() {
    const chosen = this.boxes.filter((box) => box.checked).length;
    for (const box of this.boxes) box.disabled = chosen >= 4 && !box.checked;
    this.go.disabled = chosen < 2;
  }

  /** Returns whether the links of the next demonstration are emulated. */
  isEmulated() {
    return this.links[1].checked;
  }

  /** Adapts the form to emulated links, which have real time and are not available on every machine. */
  async chooseLinks() {
    this.missing.textContent = "";
    const speed = this.sliders.get("speed");
    if (!speed) return;
    speed.input.disabled = this.isEmulated();
    if (!this.isEmulated()) return;
    speed.input.value = "1";
    speed.show();
    await this.attempt(async () => {
      /** @type {{ isReady: boolean, why: string }} */
      const { isReady, why } = await (await ask("links")).json();
      if (!isReady && this.isEmulated()) this.missing.textContent = `Cannot emulate links on this machine: ${why}. Simulated demonstrations work.`;
    });
  }

  /**
   * Runs an action, and shows its error.
   * @param {() => Promise<unknown>} action
   */
  async attempt(action) {
    this.problem.textContent = "";
    try {
      await action();
    } catch (error) {
      this.problem.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /** Starts a demonstration with the values of the form. */
  async begin() {
    this.go.disabled = true;
    try {
      const [width, height] = SIZES[Number(this.size.value)];
      const file = this.file.files?.[0];
      const picture = file ? await fromFile(file, width, height) : ours(width, height);
      const asked = new URLSearchParams({
        ...Object.fromEntries(Object.entries(this.conditions()).map(([key, value]) => [key, String(value)])),
        systems: this.boxes.filter((box) => box.checked).map((box) => box.value).join(","),
        width: String(picture.width),
        height: String(picture.height),
        seed: String(Math.max(1, Math.floor(Number(this.seed.value) || 1))),
        emulated: String(this.isEmulated()),
      });
      const answer = await ask(`${ROOM}/runs?${asked}`, { method: "POST", body: picture.bytes });
      location.hash = `${ROOM}/${(await answer.json()).id}`;
    } finally {
      this.choose();
    }
  }

  /** Shows the demonstration in the address, or the newest. */
  follow() {
    const [room, id] = location.hash.slice(1).split("/");
    if (room !== ROOM && room !== "") return;
    this.attempt(async () => {
      /** @type {{ id: number, systems: string[], over: boolean }[]} */
      const runs = await (await ask(`${ROOM}/runs`)).json();
      const newest = runs.length === 0 ? 0 : runs[runs.length - 1].id;
      const asked = Number(id) || newest;
      if (asked !== 0 && !runs.some((run) => run.id === asked)) throw new Error("This demonstration has expired: start a new one.");
      if (asked !== 0 && asked !== this.id) this.open(asked);
      const others = runs.filter((run) => run.id !== asked);
      this.others.replaceChildren(...others.flatMap((run) => [
        element("a", { href: `#${ROOM}/${run.id}` }, `${run.over ? "Ended" : "Playing"}: ${run.systems.join(", ")}`),
        element("br"),
      ]));
    });
  }

  /** @param {number} id */
  open(id) {
    this.unwatch();
    this.id = id;
    this.events = [];
    this.show = undefined;
    this.section.dataset.run = String(id);
    this.record.href = `${ROOM}/runs/${id}/recording`;
    this.record.hidden = true;
    this.unwatch = watch(`${ROOM}/runs/${id}/events`, (event) => this.hear(event));
    this.setState(false, "Playing.");
  }

  /**
   * @param {boolean} isOver
   * @param {string} state
   */
  setState(isOver, state) {
    this.isOver = isOver;
    this.state.textContent = state;
    this.section.dataset.state = isOver ? "over" : "playing";
    this.halt.disabled = isOver;
    // Without a start there is nothing to save.
    this.film.disabled = !isOver || this.record.hidden !== false;
    this.shown.hidden = false;
  }

  /** @param {import("./demonstration_show.js").Happening} event */
  hear(event) {
    this.events.push(event);
    if (event.start) {
      this.show = new Show(event.start, this.place);
      this.show.colour(this.isColoured);
      this.mirrorStart(event.start);
    } else if (event.frame) {
      this.show?.apply(event.frame);
      this.record.hidden = false;
      this.mirror(event.frame.link);
    } else if (event.over) {
      this.unwatch();
      this.show?.paint();
      this.setState(true, `Ended: ${event.over.why}.`);
    }
  }

  /**
   * Sets the form to the playing demonstration.
   * @param {import("./demonstration_show.js").Start} start
   */
  mirrorStart({ emulated, seed, systems }) {
    this.seed.value = String(seed);
    this.links.forEach((box) => {
      box.checked = (box.value === "emulated") === emulated;
    });
    for (const box of this.boxes) box.checked = systems.some(({ id }) => id === box.value);
    this.choose();
    this.chooseLinks();
  }

  /**
   * Sets the sliders to the state of the links, unless they were just moved on this page.
   * @param {Conditions} link
   */
  mirror(link) {
    if (performance.now() - this.changed < 1000) return;
    for (const [key, { input, show }] of this.sliders) {
      if (Number(input.value) !== link[key]) {
        input.value = String(link[key]);
        show();
      }
    }
  }

  /** Sends the sliders' values to a playing demonstration. */
  change() {
    this.changed = performance.now();
    if (this.id === 0 || this.isOver || this.timer !== 0) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.attempt(() => ask(`${ROOM}/runs/${this.id}/conditions`, { json: this.conditions() }));
    }, CHANGE);
  }

  /** Records a video, and saves it. */
  async save() {
    this.film.disabled = true;
    try {
      const { blob, name } = await video(this.events, this.isColoured, (share) => {
        this.film.textContent = `Recording ${Math.floor(share * 100)} %: keep this page visible`;
      });
      const url = URL.createObjectURL(blob);
      element("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } finally {
      this.film.textContent = "Save as a video";
      this.film.disabled = !this.isOver;
    }
  }
}
