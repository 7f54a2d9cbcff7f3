// @ts-check
// A demonstration as a video for slides, recorded from a playback on a canvas.
import { NUMBERS, Show, course, numbers, words } from "./demonstration_show.js";
import { time } from "./wire.js";

const WIDTH = 1280;
const HEIGHT = 720;
const FRAMES_PER_SECOND = 25;
/** The time for which the end is shown, in seconds. */
const REST = 1.5;

/** The formats of videos, the most widely supported first. */
const KINDS = ["video/mp4;codecs=avc1.42E01F", "video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm"];

/**
 * Plays the events of a demonstration in real time, and returns a video of it.
 * @param {import("./demonstration_show.js").Happening[]} events
 * @param {boolean} isColoured
 * @param {(share: number) => void} progress
 * @returns {Promise<{ blob: Blob, name: string }>}
 */
export async function video(events, isColoured, progress) {
  const kind = typeof MediaRecorder === "undefined" ? undefined : KINDS.find((kind) => MediaRecorder.isTypeSupported(kind));
  if (!kind) throw new Error("This browser cannot record videos: save the page instead, or use Chromium or Firefox.");
  const { start, frames, end: last } = course(events);
  const show = new Show(start, document.createElement("div"));
  show.colour(isColoured);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, HEIGHT];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  drawSlide(context, show);
  const recorder = new MediaRecorder(canvas.captureStream(FRAMES_PER_SECOND), { mimeType: kind, videoBitsPerSecond: 8e6 });
  /** @type {Blob[]} */
  const parts = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  const stopped = new Promise((resolve) => {
    recorder.onstop = resolve;
  });
  recorder.start(1000);
  const end = last + REST;
  const began = performance.now();
  for (let next = 0, at = 0; at < end; at = (performance.now() - began) / 1e3) {
    while (next < frames.length && frames[next].t <= at) show.apply(frames[next++]);
    show.paint();
    drawSlide(context, show);
    progress(at / end);
    await new Promise((resolve) => setTimeout(resolve, 1000 / FRAMES_PER_SECOND));
  }
  recorder.stop();
  await stopped;
  const name = `downpour-demonstration-${start.id}.${kind.startsWith("video/mp4") ? "mp4" : "webm"}`;
  return { blob: new Blob(parts, { type: kind.split(";")[0] }), name };
}

/**
 * Draws all systems side by side.
 * @param {CanvasRenderingContext2D} context
 * @param {Show} show
 */
function drawSlide(context, show) {
  const { frame, panels, start } = show;
  context.fillStyle = "#fff";
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.textBaseline = "top";
  context.fillStyle = "#1a1a1a";
  context.font = "600 24px system-ui, sans-serif";
  if (frame) {
    const floor = frame.floor === null ? "" : `   floor ${time(frame.floor)}`;
    context.fillText(`${time(frame.t)}   every link: ${words(frame.link)}${floor}`, 24, 16);
  }
  const columns = panels.length > 2 ? 2 : panels.length;
  const rows = Math.ceil(panels.length / columns);
  const [wide, tall] = [(WIDTH - 24) / columns, (HEIGHT - 60) / rows];
  panels.forEach((panel, at) => {
    const left = 24 + (at % columns) * wide;
    const top = 60 + Math.floor(at / columns) * tall;
    context.font = "600 20px system-ui, sans-serif";
    context.fillText(panel.label, left, top, wide - 24);
    const scale = Math.min((wide - 24) * (rows > 1 ? 0.62 : 1) / start.width, (tall - (rows > 1 ? 44 : 190)) / start.height);
    context.drawImage(panel.picture.canvas, left, top + 30, start.width * scale, start.height * scale);
    context.font = "17px system-ui, sans-serif";
    // Beside the picture if there are two rows, below it if there is one.
    const [x, y] = rows > 1 ? [left + start.width * scale + 14, top + 30] : [left, top + 40 + start.height * scale];
    const texts = frame ? numbers(frame, at, show.length) : [];
    texts.forEach((text, number) => context.fillText(`${NUMBERS[number]}: ${text}`, x, y + number * 24, left + wide - 14 - x));
  });
}
