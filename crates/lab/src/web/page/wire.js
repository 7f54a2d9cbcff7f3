// @ts-check
// Requests and events.

/**
 * Asks the lab; throws the line with which it refuses.
 * @param {string} path
 * @param {{ method?: string, json?: unknown, body?: BodyInit }} [options]
 * @returns {Promise<Response>}
 */
export async function ask(path, options = {}) {
  const { json, ...rest } = options;
  const request = json === undefined
    ? rest
    : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(json) };
  const answer = await fetch(path, request).catch(() => {
    throw new Error("The lab has stopped or cannot be reached.");
  });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `The lab answers ${answer.status}.`);
  return answer;
}

/** Sources of events that are not connected now. */
const lost = new Set();

/**
 * Reads the events of a topic, from its beginning and, after an interruption, from where it was. Returns what ends it.
 * @template Told
 * @param {string} path
 * @param {(event: Told) => void} heard
 * @returns {() => void}
 */
export function watch(path, heard) {
  const source = new EventSource(path);
  const mark = (/** @type {boolean} */ isLost) => {
    if (isLost) lost.add(source);
    else lost.delete(source);
    /** @type {HTMLElement} */ (document.getElementById("lost")).hidden = lost.size === 0;
  };
  source.onopen = () => mark(false);
  source.onerror = () => mark(true);
  source.onmessage = (message) => heard(JSON.parse(message.data));
  return () => {
    source.close();
    mark(false);
  };
}

/**
 * Makes an element.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string | boolean | ((event: Event) => void)>} [attributes] a function listens to the event of that name
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/**
 * @param {number} seconds
 * @returns {string}
 */
export function time(seconds) {
  if (seconds < 1) return `${(seconds * 1000).toPrecision(3)} ms`;
  if (seconds < 100) return `${seconds.toPrecision(3)} s`;
  return `${Math.floor(seconds / 60)} min ${String(Math.round(seconds % 60)).padStart(2, "0")} s`;
}
