// @ts-check
// Small charts over one time axis, with zoom and pan.

/** Colours and markers of the reports' pictures, for two traces: neighbours differ in both. */
export const COLOURS = ["#0072b2", "#d55e00"];
export const MARKERS = ["●", "■"];

/** Room around a plot, in CSS pixels. */
const LEFT = 52;
const RIGHT = 10;
const TOP = 6;
const BOTTOM = 20;
/** Distance of the markers on a line. */
const MARKER_EVERY = 90;
/** The shortest visible interval, in seconds. */
const SHORTEST = 1e-3;

/**
 * A line: values at times, and their trace. `low` and `high` exist if a value summarises several.
 * @typedef {{ times: number[], mean: (number | null)[], low?: (number | null)[], high?: (number | null)[], unit: number, trace: number, isDashed: boolean }} Line
 */

/**
 * Returns the width of the plot on a canvas, in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 */
export function plotWidth(canvas) {
  return Math.max(1, canvas.clientWidth - LEFT - RIGHT);
}

/**
 * Returns the time at a position on the screen.
 * @param {HTMLCanvasElement} canvas
 * @param {number} x
 * @param {[number, number]} view
 */
function timeAt(canvas, x, [from, to]) {
  const share = (x - canvas.getBoundingClientRect().left - LEFT) / plotWidth(canvas);
  return from + share * (to - from);
}

/** Returns the least of 1, 2, 5, 10 ... that is not below. @param {number} least */
function step(least) {
  const decade = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5].find((digit) => digit * decade >= least * (1 - 1e-9)) ?? 10) * decade;
}

/** Returns ticks of an axis, with their labels. @param {number} from @param {number} to @param {number} most */
function ticks(from, to, most) {
  const between = step((to - from) / most);
  const digits = Math.max(0, -Math.floor(Math.log10(between) + 1e-9));
  /** @type {[number, string][]} */
  const found = [];
  for (let at = Math.ceil(from / between - 1e-9); at * between <= to + between * 1e-9; at += 1) {
    found.push([at * between, (at * between).toFixed(Math.min(digits, 9))]);
  }
  return found;
}

/** Sets a canvas to the screen's resolution, and returns its context. @param {HTMLCanvasElement} canvas */
export function sharp(canvas) {
  const scale = devicePixelRatio || 1;
  const [width, height] = [Math.round(canvas.clientWidth * scale), Math.round(canvas.clientHeight * scale)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  return context;
}

/** Returns the colours of the page, light or dark. @param {Element} within */
export function inks(within) {
  const style = getComputedStyle(within);
  const of = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return { ink: of("--ink"), soft: of("--soft"), line: of("--line"), paper: of("--paper") };
}

/**
 * Draws lines over time.
 * @param {HTMLCanvasElement} canvas
 * @param {Line[]} lines
 * @param {[number, number]} view
 * @param {number | null} cursor
 */
export function draw(canvas, lines, view, cursor) {
  if (!canvas.clientWidth) return;
  const context = sharp(canvas);
  const colours = inks(canvas);
  const [width, height] = [plotWidth(canvas), canvas.clientHeight - TOP - BOTTOM];
  const [from, to] = view;
  const top = greatest(lines, view);
  const highest = step(top / 4) * Math.ceil((top / step(top / 4)) * (1 - 1e-9));
  const x = (/** @type {number} */ time) => LEFT + ((time - from) / (to - from)) * width;
  const y = (/** @type {number} */ value) => TOP + height - (value / highest) * height;
  context.font = "12px system-ui, sans-serif";
  context.lineWidth = 1;
  context.strokeStyle = colours.line;
  context.fillStyle = colours.soft;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const [value, label] of ticks(0, highest, 4)) {
    const at = Math.round(y(value)) + 0.5;
    context.beginPath();
    context.moveTo(LEFT, at);
    context.lineTo(LEFT + width, at);
    context.stroke();
    context.fillText(label, LEFT - 6, at);
  }
  context.textBaseline = "top";
  context.textAlign = "center";
  for (const [time, label] of ticks(from, to, Math.max(3, width / 90))) {
    context.fillText(label, Math.min(Math.max(x(time), LEFT + 8), LEFT + width - 8), TOP + height + 5);
  }
  context.save();
  context.beginPath();
  context.rect(LEFT, TOP - 5, width, height + 10);
  context.clip();
  for (const line of lines) drawLine(context, line, x, y);
  if (cursor !== null) {
    context.strokeStyle = colours.soft;
    context.beginPath();
    context.moveTo(x(cursor), TOP);
    context.lineTo(x(cursor), TOP + height);
    context.stroke();
  }
  context.restore();
}

/** Returns the greatest visible value. @param {Line[]} lines @param {[number, number]} view */
function greatest(lines, [from, to]) {
  let found = 0;
  for (const { times, mean, high, unit } of lines) {
    const values = high ?? mean;
    for (let at = 0; at < times.length; at += 1) {
      const value = values[at];
      if (value !== null && times[at] >= from && times[at] <= to) found = Math.max(found, value * unit);
    }
  }
  return found > 0 && Number.isFinite(found) ? found : 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Line} line
 * @param {(time: number) => number} x
 * @param {(value: number) => number} y
 */
function drawLine(context, { times, mean, low, high, unit, trace, isDashed }, x, y) {
  context.strokeStyle = context.fillStyle = COLOURS[trace];
  if (low && high) {
    context.globalAlpha = 0.35;
    context.lineWidth = 1;
    context.beginPath();
    for (let at = 0; at < times.length; at += 1) {
      const [least, most] = [low[at], high[at]];
      if (least === null || most === null || least === most) continue;
      context.moveTo(x(times[at]), y(least * unit));
      context.lineTo(x(times[at]), y(most * unit));
    }
    context.stroke();
    context.globalAlpha = 1;
  }
  context.lineWidth = isDashed ? 1 : 1.75;
  context.setLineDash(isDashed ? [4, 3] : []);
  context.beginPath();
  let isJoined = false;
  for (let at = 0; at < times.length; at += 1) {
    const value = mean[at];
    if (value === null) {
      isJoined = false;
    } else if (isJoined) {
      context.lineTo(x(times[at]), y(value * unit));
    } else {
      context.moveTo(x(times[at]), y(value * unit));
      isJoined = true;
    }
  }
  context.stroke();
  context.setLineDash([]);
  if (isDashed) return;
  let next = LEFT + MARKER_EVERY * (trace ? 0.75 : 0.25);
  for (let at = 0; at < times.length; at += 1) {
    const [value, place] = [mean[at], x(times[at])];
    if (value === null || place < next) continue;
    next = place + MARKER_EVERY;
    context.beginPath();
    if (trace) context.rect(place - 3.5, y(value * unit) - 3.5, 7, 7);
    else context.arc(place, y(value * unit), 4, 0, 2 * Math.PI);
    context.fill();
  }
}

/**
 * Restricts an interval to the existing times.
 * @param {[number, number]} view
 * @param {number} end
 * @returns {[number, number]}
 */
export function within([from, to], end) {
  const span = Math.min(Math.max(to - from, SHORTEST), Math.max(end, SHORTEST));
  const start = Math.min(Math.max(from, 0), Math.max(end - span, 0));
  return [start, start + span];
}

/**
 * Makes a view longer or shorter around a time.
 * @param {[number, number]} view
 * @param {number} times
 * @param {number} [around]
 * @returns {[number, number]}
 */
export function zoomed([from, to], times, around = (from + to) / 2) {
  return [around - (around - from) * times, around + (to - around) * times];
}

/**
 * Moves and zooms by mouse, wheel, touch and keyboard.
 * @param {HTMLElement} area whose canvases have the time axis
 * @param {{ get: () => [number, number], set: (view: [number, number]) => void, all: () => void, newest: () => void, point: (time: number | null) => void }} axis
 */
export function interact(area, axis) {
  /** @type {Map<number, number>} */
  const held = new Map();
  const canvasOf = (/** @type {Event} */ event) =>
    /** @type {HTMLCanvasElement | null} */ (/** @type {Element} */ (event.target).closest("canvas"));
  const shift = (/** @type {number} */ time) => {
    const [from, to] = axis.get();
    axis.set([from + time, to + time]);
  };
  area.addEventListener("wheel", (event) => {
    const canvas = canvasOf(event);
    if (!canvas) return;
    event.preventDefault();
    const view = axis.get();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) shift((event.deltaX / plotWidth(canvas)) * (view[1] - view[0]));
    else axis.set(zoomed(view, Math.exp(event.deltaY * 0.002), timeAt(canvas, event.clientX, view)));
  }, { passive: false });
  area.addEventListener("pointerdown", (event) => {
    const canvas = canvasOf(event);
    if (!canvas || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, event.clientX);
  });
  area.addEventListener("pointermove", (event) => {
    const canvas = canvasOf(event);
    if (!canvas) return;
    const before = held.get(event.pointerId);
    const view = axis.get();
    if (before === undefined) {
      if (event.pointerType === "mouse") axis.point(timeAt(canvas, event.clientX, view));
      return;
    }
    const perPixel = (view[1] - view[0]) / plotWidth(canvas);
    const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
    held.set(event.pointerId, event.clientX);
    if (other === undefined) {
      shift((before - event.clientX) * perPixel);
    } else {
      const [far, near] = [Math.abs(before - other), Math.abs(event.clientX - other)];
      if (far > 10 && near > 10) axis.set(zoomed(view, far / near, timeAt(canvas, (event.clientX + other) / 2, view)));
    }
  });
  for (const name of ["pointerup", "pointercancel"]) {
    area.addEventListener(name, (event) => held.delete(/** @type {PointerEvent} */ (event).pointerId));
  }
  area.addEventListener("pointerleave", () => axis.point(null));
  area.addEventListener("dblclick", () => axis.all());
  area.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const [from, to] = axis.get();
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => shift((from - to) / 8),
      ArrowRight: () => shift((to - from) / 8),
      "+": () => axis.set(zoomed([from, to], 0.7)),
      "=": () => axis.set(zoomed([from, to], 0.7)),
      "-": () => axis.set(zoomed([from, to], 1 / 0.7)),
      Home: () => axis.all(),
      End: () => axis.newest(),
    };
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });
}
