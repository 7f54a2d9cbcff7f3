// @ts-check
// The shell of the rooms. Paths are relative to the page, whose address has the secret.

/** The rooms by the names of their sections; each is started when first shown. */
const rooms = /** @type {Record<string, () => Promise<{ start: (section: HTMLElement) => void }>>} */ ({
  testing: () => import("./testing.js"),
  results: () => import("./results.js"),
  demonstration: () => import("./demonstration.js"),
  live: () => import("./live.js"),
});

const started = new Set();

/** Shows the room in the address. */
async function show() {
  const links = [...document.querySelectorAll("nav a")];
  const names = links.map((link) => link.getAttribute("href")?.slice(1) ?? "");
  const asked = location.hash.slice(1).split(/[/?]/)[0];
  const name = names.includes(asked) ? asked : names[0];
  for (const link of links) {
    const isCurrent = link.getAttribute("href") === `#${name}`;
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const section of document.querySelectorAll("main > section")) {
    /** @type {HTMLElement} */ (section).hidden = section.id !== name;
  }
  document.title = `${links[names.indexOf(name)].textContent} - downpour lab`;
  if (!started.has(name) && rooms[name]) {
    started.add(name);
    (await rooms[name]()).start(/** @type {HTMLElement} */ (document.getElementById(name)));
  }
}

addEventListener("hashchange", show);
show();
