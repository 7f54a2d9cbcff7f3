// @ts-check
// The picture to send: a file of the user, or a built-in drawing.

/**
 * Returns the pixels of a picture, red, green and blue in turn.
 * @param {CanvasRenderingContext2D} context
 * @returns {{ width: number, height: number, bytes: Uint8Array<ArrayBuffer> }}
 */
function pixels(context) {
  const { width, height } = context.canvas;
  const { data } = context.getImageData(0, 0, width, height);
  const bytes = new Uint8Array(width * height * 3);
  for (let pixel = 0; pixel < width * height; pixel += 1) {
    bytes.set(data.subarray(pixel * 4, pixel * 4 + 3), pixel * 3);
  }
  return { width, height, bytes };
}

/**
 * @param {number} width
 * @param {number} height
 * @returns {CanvasRenderingContext2D}
 */
function blank(width, height) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
  // Transparent pixels become white.
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  return context;
}

/**
 * Reads a picture file, and scales it down to fit.
 * @param {File} file
 * @param {number} width
 * @param {number} height
 */
export async function fromFile(file, width, height) {
  const image = await createImageBitmap(file).catch(() => {
    throw new Error(`Cannot read ${file.name}: choose a PNG, JPEG, WebP or AVIF file.`);
  });
  const scale = Math.min(1, width / image.width, height / image.height);
  const context = blank(Math.max(1, Math.round(image.width * scale)), Math.max(1, Math.round(image.height * scale)));
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, context.canvas.width, context.canvas.height);
  return pixels(context);
}

/**
 * Draws the built-in picture: rain over hills, with fine lines and letters that make holes visible.
 * @param {number} width
 * @param {number} height
 */
export function ours(width, height) {
  const context = blank(width, height);
  // Drawn in units of its own.
  context.scale(width / 1024, height / 768);
  sky(context);
  hills(context);
  rain(context);
  letters(context);
  ruler(context);
  return pixels(context);
}

/** @param {CanvasRenderingContext2D} context */
function sky(context) {
  const light = context.createLinearGradient(0, 0, 0, 560);
  light.addColorStop(0, "#16324f");
  light.addColorStop(0.55, "#4f86a8");
  light.addColorStop(0.85, "#f3c98b");
  light.addColorStop(1, "#f7e3c0");
  context.fillStyle = light;
  context.fillRect(0, 0, 1024, 768);
  const sun = context.createRadialGradient(770, 410, 10, 770, 410, 190);
  sun.addColorStop(0, "#fff6d8");
  sun.addColorStop(0.25, "#ffdf9a");
  sun.addColorStop(1, "rgb(255 223 154 / 0%)");
  context.fillStyle = sun;
  context.fillRect(560, 210, 420, 400);
}

/** @param {CanvasRenderingContext2D} context */
function hills(context) {
  ["#5d7f86", "#3f6a63", "#2d5145", "#1c3830"].forEach((colour, row) => {
    const base = 480 + row * 62;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(0, 768);
    for (let x = 0; x <= 1024; x += 4) {
      const y = base + 38 * Math.sin(x / (150 - row * 22) + row * 1.9) + 9 * Math.sin(x / 23 + row * 5);
      context.lineTo(x, y);
    }
    context.lineTo(1024, 768);
    context.fill();
  });
  // Trees.
  for (let tree = 0; tree < 70; tree += 1) {
    const x = (tree * 337) % 1024;
    const y = 690 + ((tree * 71) % 60);
    const tall = 26 + ((tree * 29) % 22);
    context.fillStyle = tree % 3 === 0 ? "#0f2620" : "#16332a";
    context.beginPath();
    context.moveTo(x - tall / 4, y);
    context.lineTo(x, y - tall);
    context.lineTo(x + tall / 4, y);
    context.fill();
  }
}

/** @param {CanvasRenderingContext2D} context */
function rain(context) {
  context.lineWidth = 1.2;
  for (let drop = 0; drop < 900; drop += 1) {
    const x = (drop * 619) % 1100;
    const y = (drop * 353) % 560;
    const long = 10 + ((drop * 17) % 16);
    context.strokeStyle = `rgb(225 238 255 / ${18 + ((drop * 13) % 30)}%)`;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - long / 3, y + long);
    context.stroke();
  }
}

/** @param {CanvasRenderingContext2D} context */
function letters(context) {
  context.textAlign = "center";
  context.fillStyle = "#fff";
  context.font = "700 132px system-ui, sans-serif";
  context.fillText("downpour", 512, 190);
  context.font = "500 27px system-ui, sans-serif";
  context.fillText("every byte arrives, or is rebuilt from those that did", 512, 240);
  context.textAlign = "left";
  context.font = "13px ui-monospace, monospace";
  for (let line = 0; line < 8; line += 1) {
    let text = "";
    for (let at = 0; at < 46; at += 1) text += String.fromCharCode(33 + ((line * 46 + at * 7) % 90));
    context.fillStyle = `rgb(255 255 255 / ${90 - line * 7}%)`;
    context.fillText(text, 28, 300 + line * 18);
  }
}

/** @param {CanvasRenderingContext2D} context */
function ruler(context) {
  // A chessboard and rays, which make a missing row visible.
  for (let row = 0; row < 10; row += 1) {
    for (let column = 0; column < 10; column += 1) {
      context.fillStyle = (row + column) % 2 === 0 ? "#f4f4f0" : "#22262b";
      context.fillRect(900 + column * 9, 28 + row * 9, 9, 9);
    }
  }
  context.strokeStyle = "rgb(255 255 255 / 75%)";
  context.lineWidth = 1;
  for (let ray = 0; ray < 36; ray += 1) {
    const angle = (ray / 36) * 2 * Math.PI;
    context.beginPath();
    context.moveTo(78 + 12 * Math.cos(angle), 78 + 12 * Math.sin(angle));
    context.lineTo(78 + 50 * Math.cos(angle), 78 + 50 * Math.sin(angle));
    context.stroke();
  }
}
