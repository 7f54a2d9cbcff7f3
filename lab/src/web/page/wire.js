// @ts-check
// Requests and events.

/** The message about a lab that does not answer. */
const GONE = "The lab has stopped or cannot be reached. Start it again and open the address that it prints.";

/**
 * Sends a request to the lab; throws its refusal.
 * @param {string} path
 * @param {{ method?: string, json?: unknown, body?: BodyInit, headers?: Record<string, string>, signal?: AbortSignal }} [options]
 * @returns {Promise<Response>}
 */
export async function ask(path, options = {}) {
  const { json, ...rest } = options;
  const request = json === undefined
    ? rest
    : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(json) };
  const answer = await fetch(path, request).catch(() => {
    throw new Error(GONE);
  });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `Unexpected status ${answer.status} from the lab.`);
  return answer;
}

/** The time limit for an answer with events, in ms. */
const PATIENCE = 8000;
/** The shortest and the longest interval of polls for events, and the pause after a failure, in ms. */
const [SHORTEST, LONGEST, AGAIN] = [40, 400, 1000];
/** The messages of watchers without an answer. @type {Map<object, string>} */
const lost = new Map();

/**
 * Reads the events of a topic from its beginning, and resumes after an interruption. Returns the function that ends it.
 *
 * It polls, and sooner after several events at once. A browser has six connections to a server for all its tabs, so
 * none is held open, and any number of tabs can watch. It pauses while the tab or the room is hidden: the first part of
 * the path is the room. @template Item @param {string} path @param {(event: Item) => void} heard @returns {() => void}
 */
export function watch(path, heard) {
  const watcher = { isOver: false };
  follow(path, heard, watcher);
  return () => {
    watcher.isOver = true;
    say(watcher, null);
  };
}

/**
 * @template Item
 * @param {string} path
 * @param {(event: Item) => void} heard
 * @param {{ isOver: boolean }} watcher
 */
async function follow(path, heard, watcher) {
  const room = document.getElementById(path.split("/")[0]);
  let [last, pause] = [/** @type {number | null} */ (null), SHORTEST];
  while (!watcher.isOver) {
    if (document.hidden || room?.hidden) {
      await wait(LONGEST);
      continue;
    }
    const batch = /** @type {{ last: number | null, events: Item[] } | null | undefined} */ (await news(path, last, watcher));
    if (batch === null) return;
    for (const event of batch?.events ?? []) {
      if (watcher.isOver) return;
      try {
        heard(event);
      } catch (error) {
        reportError(error);
      }
    }
    if (batch) {
      const count = batch.events.length;
      last = batch.last;
      if (count === 0) pause = Math.min(LONGEST, pause * 1.5);
      if (count > 1) pause = Math.max(SHORTEST, pause / 2);
    }
    await wait(batch ? pause : AGAIN);
  }
}

/**
 * Requests the events after the last one: `null` at the end of the topic, `undefined` without an answer, which the
 * page shows. @param {string} path @param {number | null} last @param {{ isOver: boolean }} watcher
 */
async function news(path, last, watcher) {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), PATIENCE);
  try {
    const answer = await ask(path, { headers: last === null ? {} : { "last-event-id": String(last) }, signal: late.signal });
    const batch = answer.status === 204 ? null : await answer.json().catch(() => { throw new Error(GONE); });
    say(watcher, null);
    return batch;
  } catch (error) {
    say(watcher, /** @type {Error} */ (error).message);
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/** Shows or clears an error on the page. @param {{ isOver: boolean }} watcher @param {string | null} trouble */
function say(watcher, trouble) {
  if (trouble === null || watcher.isOver) lost.delete(watcher);
  else lost.set(watcher, trouble);
  const said = /** @type {HTMLElement} */ (document.getElementById("lost"));
  const [first = ""] = lost.values();
  said.hidden = lost.size === 0;
  if (said.textContent !== first) said.textContent = first;
}

/** @param {number} pause in ms */
function wait(pause) {
  return new Promise((done) => { setTimeout(done, pause); });
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
  // Rounded before the unit is chosen, which avoids 1000 ms and 60 s.
  const rounded = seconds < 100 ? Number(seconds.toPrecision(3)) : Math.round(seconds);
  if (rounded < 1) return `${(rounded * 1000).toPrecision(3)} ms`;
  if (rounded < 100) return `${rounded.toPrecision(3)} s`;
  return `${Math.floor(rounded / 60)} min ${String(rounded % 60).padStart(2, "0")} s`;
}
