// @ts-check
// The form of Testing.
import { AXES, text, values } from "./plan.js";
import { ask, element } from "./wire.js";

/** The quantities for pictures: in the simulator, and over links. */
const QUANTITIES = [
  ["seconds", "goodput", "wire", "overhead", "loss-estimate", "queue-p95", "queue-drops", "receiver-memory", "share"],
  ["seconds", "goodput"],
];
/** The initially selected systems. */
const FIRST = [["auto", "auto, fixed rate", "arq"], ["tcp-cubic", "tcp-bbr", "downpour-auto"]];
/** The parts of a link: key, label, initial value, examples. */
const LINK = /** @type {[string, string, string, string][]} */ ([
  ["rate", "Rate", "20M", "100M, 1G"],
  ["delay", "One-way delay", "25ms", "50ms"],
  ["loss", "Loss", "", "1%"],
  ["burst", "Mean burst of losses, packets", "", "5"],
  ["queue", "Queue", "1bdp", "256KB, 1bdp"],
  ["marks", "ECN marks", "", "1%, or above 156KB"],
  ["jitter", "Jitter", "", "5ms"],
  ["other", "Other impairments", "", "codel=5ms:100ms, reorder=1%:2ms"],
]);

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Control */

/** The fields of a plan's text. */
export class PlanForm {
  /** @type {Record<string, Control>} */
  #fields = {};
  #isSimulated = true;
  /** The link and the pair of a network, for emulated links. */
  #place = element("span", { class: "grid" });

  /**
   * @param {import("./plan.js").Choices} choices
   * @param {() => void} changed
   */
  constructor(choices, changed) {
    this.choices = choices;
    const changes = () => {
      this.#adapt();
      changed();
    };
    this.systems = element("fieldset", { id: "plan-systems" });
    this.ready = element("p", { class: "bad", hidden: true, "aria-live": "polite" });
    this.topology = element("div", { class: "grid" });
    this.element = element("form", { id: "plan-form", input: changes, submit: (/** @type {Event} */ event) => event.preventDefault() },
      this.#switch(),
      this.ready,
      element("div", { class: "grid" }, this.#field("name", "Name", "my/loss"), this.#field("title", "Title", "Loss on one link")),
      this.systems,
      this.#field("more", "More systems, one per line, with settings of the profile", "", "arq congestion=cubic congestion.beta=0.5", "textarea"),
      element("fieldset", {}, element("legend", {}, "Link"),
        element("div", { class: "grid" }, ...LINK.map(([key, label, value, hint]) => this.#field(`link-${key}`, label, value, hint)), this.#field("back", "Reverse direction", "", "loss=0%,rate=5M")),
        this.topology),
      element("fieldset", {}, element("legend", {}, "Varied quantity"), this.vary = element("div", { class: "grid" })),
      element("fieldset", {}, element("legend", {}, "Runs"), element("div", { class: "grid" },
        this.#field("size", "Size of the file", "2MB", "10MB"), this.#field("repeats", "Repeats", "5"), this.#field("cap", "Time limit of a run", "120s"),
        this.#field("told", "Fixed rate, share of the link's", "97%"), this.drawn = element("span", {}))));
    this.#made();
  }

  /** Returns the plan of the form, and the topology in its directory. */
  plan() {
    const of = (/** @type {string} */ name) => String(this.#fields[name]?.value ?? "").trim();
    const topology = this.choices.topologies.find((file) => file.name === of("topology")) ?? null;
    const systems = /** @type {HTMLInputElement[]} */ ([...this.systems.querySelectorAll("input:checked")]).map((box) => box.value);
    const form = {
      isSimulated: this.#isSimulated, name: of("name"), title: of("title"), systems, more: values(`${of("more")}\n`),
      link: Object.fromEntries(LINK.map(([key]) => [key, of(`link-${key}`)])), back: of("back"), topology,
      between: Number(of("between")), pair: Number(of("pair")), vary: of("vary"), path: of("path"), values: values(of("values")), size: of("size"),
      repeats: of("repeats") || "1", cap: of("cap"), rateShare: of("told"), y: of("y"), isLog: of("scale") === "log",
    };
    return { text: text(form, this.choices), beside: topology?.name ?? null };
  }

  /** The switch between the two kinds of systems. */
  #switch() {
    const kind = (/** @type {string} */ value, /** @type {string} */ label) => element("label", {},
      element("input", { type: "radio", name: "kind", value, checked: (value === "simulated") === this.#isSimulated, change: () => this.#turn(value === "simulated") }), label);
    return element("fieldset", { id: "plan-kind" }, element("legend", {}, "Where"), element("div", { class: "row" },
      kind("simulated", "Simulated: the engine in virtual time"), kind("links", "Emulated links: real programs in real time")));
  }

  /** @param {boolean} isSimulated */
  #turn(isSimulated) {
    this.#isSimulated = isSimulated;
    this.#made();
    this.element.dispatchEvent(new Event("input"));
    if (!isSimulated) this.#probe();
    else this.ready.hidden = true;
  }

  /** Shows a missing requirement for links. */
  async #probe() {
    this.ready.hidden = true;
    try {
      const links = await (await ask("links")).json();
      this.ready.hidden = links.isReady || this.#isSimulated;
      this.ready.textContent = `Cannot emulate links on this machine: ${links.why}. Simulated plans work.`;
    } catch (error) {
      this.ready.hidden = false;
      this.ready.textContent = String(/** @type {Error} */ (error).message);
    }
  }

  /** Creates the parts that depend on the kind of systems. */
  #made() {
    const kind = this.#isSimulated ? 0 : 1;
    const boxes = this.#isSimulated
      ? this.choices.simulated.map((system) => this.#box(system.name, system.about, null, FIRST[0]))
      : this.choices.peers.map((peer) => this.#box(peer.name, peer.needsRate ? "fixed rate" : "", peer.missing ? `needs ${peer.missing}: ${peer.install}` : null, FIRST[1]));
    this.systems.replaceChildren(element("legend", {}, "Systems"), element("div", { class: "boxes" }, ...boxes));
    const files = this.choices.topologies.filter((file) => this.#isSimulated || file.pairs.length > 0);
    const of = (/** @type {string} */ name, /** @type {[string, string][]} */ options) => element("select", { id: `plan-${name}`, name }, ...options.map(([value, label]) => element("option", { value }, label)));
    this.topology.replaceChildren(this.#labelled("topology", "Network", of("topology", [["", "one link"], ...files.map((file) => /** @type {[string, string]} */ ([file.name, file.name]))])), this.#place);
    const axes = /** @type {[string, string][]} */ (AXES.map((axis) => [axis, axis]));
    if (this.#isSimulated) axes.splice(5, 0, ["jitter", "jitter"]), axes.push(["other", "another path"]);
    this.vary.replaceChildren(
      this.#labelled("vary", "Varied", of("vary", axes)),
      ...(this.#isSimulated ? [this.#field("path", "Path", "flows.congestion.beta")] : []),
      this.#field("values", "Values (comma-separated or one per line)", "0%, 1%, 3%, 5%", "1%, 5% / 0%", "textarea"),
      this.#labelled("scale", "Axis", of("scale", [["linear", "linear"], ["log", "logarithmic"]])));
    this.drawn.replaceChildren(this.#labelled("y", "Drawn", of("y", QUANTITIES[kind].map((name) => [name, name]))));
    this.#adapt();
  }

  /** Adapts the form to the choices. */
  #adapt() {
    const path = this.#fields.path?.closest("label");
    if (path) path.hidden = this.#fields.vary.value !== "other" || !this.#isSimulated;
    const file = this.choices.topologies.find((file) => file.name === this.#fields.topology.value);
    const key = this.#isSimulated || !file ? "" : file.name;
    if (this.#place.dataset.file === key) return;
    this.#place.dataset.file = key;
    const options = (/** @type {[string, string][]} */ all) => all.map((pair, at) => element("option", { value: String(at) }, pair.join(" - ")));
    this.#place.replaceChildren(...(file && key ? [
      this.#labelled("between", "This link is between", element("select", {}, ...options(file.links))),
      this.#labelled("pair", "Sender and receiver", element("select", {}, ...options(file.pairs))),
    ] : []));
  }

  /**
   * @param {string} name
   * @param {string} about
   * @param {string | null} missing
   * @param {string[]} first
   */
  #box(name, about, missing, first) {
    const box = element("input", { type: "checkbox", value: name, checked: !missing && first.includes(name), disabled: missing !== null });
    return element("label", { class: missing ? "soft" : "" }, box, element("span", {}, name, " ", element("small", {}, missing ?? about)));
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {string} value
   * @param {string} [hint]
   * @param {"input" | "textarea"} [kind]
   */
  #field(name, label, value, hint = "", kind = "input") {
    const made = element(kind, { name, id: `plan-${name}`, placeholder: hint, ...(kind === "textarea" ? { rows: "2" } : { autocomplete: "off" }) });
    made.value = value;
    return this.#labelled(name, label, made);
  }

  /** @param {string} name @param {string} label @param {Control} control */
  #labelled(name, label, control) {
    control.id = `plan-${name}`;
    this.#fields[name] = control;
    return element("label", { class: "field" }, element("span", {}, label), control);
  }
}
