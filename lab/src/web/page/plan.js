// @ts-check
// A plan as text, from the values of the form. Only the lab's own readers parse and check it.

/**
 * @typedef {{ name: string, about: string, set: [string, string][], needsRate: boolean }} Simulated
 * @typedef {{ name: string, missing: string | null, install: string | null, needsRate: boolean, encrypted: boolean, starts: string, ends: string }} Peer
 * @typedef {{ name: string, file: string, hosts: string[], links: [string, string][], pairs: [string, string][] }} Topology
 * @typedef {{ simulated: Simulated[], peers: Peer[], topologies: Topology[], experiments: { name: string, hasResults: boolean, isRunning: boolean }[], cores: number }} Choices
 * @typedef {{ isSimulated: boolean, name: string, title: string, systems: string[], more: string[], link: Record<string, string>, back: string,
 *   topology: Topology | null, between: number, pair: number, vary: string, path: string, values: string[], size: string, repeats: string,
 *   cap: string, rateShare: string, y: string, isLog: boolean }} Form
 */

/** The axes over links; in the simulator any path can be varied. */
export const AXES = ["loss", "delay", "rate", "burst", "queue", "size", "link"];
const FLOW = "file";

const quoted = (/** @type {string} */ text) => JSON.stringify(text);
const listed = (/** @type {string[]} */ all) => `[${all.map(quoted).join(", ")}]`;

/**
 * The text form of a link: `rate=20M,delay=50ms / rate=1M,delay=50ms`.
 * @param {Record<string, string>} parts
 * @param {string} back differences of the reverse direction
 */
export function link(parts, back) {
  const keys = Object.entries(parts).filter(([key, value]) => value && key !== "marks" && key !== "other");
  if (parts.marks) keys.push([parts.marks.endsWith("%") ? "mark" : "mark-above", parts.marks]);
  const all = [...keys.map(([key, value]) => `${key}=${value}`), ...split(parts.other)];
  const forward = all.join(",") || "perfect";
  if (!back.trim()) return forward;
  const own = split(back);
  const isOwn = (/** @type {string} */ part) => own.some((other) => other.split("=")[0] === part.split("=")[0]);
  return `${forward} / ${[...all.filter((part) => !isOwn(part)), ...own].join(",") || "perfect"}`;
}

const split = (/** @type {string | undefined} */ text) => (text ?? "").split(",").map((part) => part.trim()).filter(Boolean);

/**
 * Values: separated by commas, or one per line, which may contain commas.
 * @param {string} text
 */
export function values(text) {
  return text.split(text.includes("\n") ? "\n" : ",").map((value) => value.trim()).filter(Boolean);
}

/**
 * Returns the plan of a form.
 * @param {Form} form
 * @param {Choices} choices
 */
export function text(form, choices) {
  return form.isSimulated ? simulated(form, choices) : overLinks(form);
}

/** @param {Form} form */
function head(form) {
  return [
    `name = ${quoted(form.name)}`,
    `title = ${quoted(form.title)}`,
    `link = ${quoted(link(form.link, form.back))}`,
    `repeats = ${form.repeats}`,
    `cap = ${quoted(form.cap)}`,
  ];
}

/** @param {Form} form @param {string} vary */
function sweep(form, vary) {
  const lines = ["", "[[sweep]]", `name = ${quoted(name(vary))}`, `vary = ${quoted(vary)}`, `values = ${listed(form.values)}`];
  if (form.isLog) lines.push('scale = "log"');
  return lines;
}

/** The name of a sweep over this path. @param {string} vary */
const name = (vary) => vary.toLowerCase().replace(/^(link|file)\./, "").replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "values";

/**
 * @param {Form} form
 * @param {Choices} choices
 */
function simulated(form, choices) {
  const lines = head(form);
  if (form.topology) lines.push("", "[topology]", `file = ${quoted(form.topology.file)}`);
  lines.push("", "[[flow]]", `name = ${quoted(FLOW)}`, 'profile = "auto"', `size = ${quoted(form.size)}`);
  const known = form.systems.flatMap((name) => choices.simulated.filter((system) => system.name === name));
  for (const system of known) {
    const share = /** @type {[string, string][]} */ (system.needsRate ? [["told", form.rateShare]] : []);
    lines.push(...series(system.name, [...system.set, ...share]));
  }
  for (const line of form.more) {
    const [profile, ...set] = line.split(/\s+/);
    lines.push(...series(line, [["profile", profile], ...set.map((word) => /** @type {[string, string]} */ (word.split(/=(.*)/, 2)))]));
  }
  const path = form.vary === "other" ? form.path : form.vary === "size" ? `${FLOW}.size` : form.vary === "link" ? "link" : `link.${form.vary}`;
  lines.push("", "[picture]", `y = ${quoted(form.y)}`, ...sweep(form, path));
  return `${lines.join("\n")}\n`;
}

/** @param {string} name @param {[string, string][]} set */
function series(name, set) {
  const inner = set.map(([key, value]) => `${quoted(`${FLOW}.${key}`)} = ${quoted(value ?? "")}`).join(", ");
  return ["", "[[series]]", `name = ${quoted(name)}`, ...(inner ? [`set = { ${inner} }`] : [])];
}

/** @param {Form} form */
function overLinks(form) {
  const lines = head(form);
  lines.push(`size = ${quoted(form.size)}`, `peers = ${listed([...form.systems, ...form.more])}`, `told = ${quoted(form.rateShare)}`);
  if (form.topology) {
    const { file, links, pairs } = form.topology;
    lines.push(`topology = { file = ${quoted(file)}, between = ${listed(links[form.between] ?? ["", ""])}, pair = ${listed(pairs[form.pair] ?? ["", ""])} }`);
  }
  lines.push("", "[picture]", `y = ${quoted(form.y)}`, ...sweep(form, form.vary));
  return `${lines.join("\n")}\n`;
}
