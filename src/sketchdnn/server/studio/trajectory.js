// The denoising of one sketch as an animation, in a dialog.

import { stream } from "./api.js";
import { attempt, byId, s } from "./dom.js";
import { boundsOf, pathOf } from "./geometry.js";
import { viewOf } from "./picture.js";

const FRAMES = 40;
const SECONDS = 0.09;
const SIDE = 400;
// Curves longer than this many pictures are noise that would only fill the page.
const LONGEST = 12;

const dialog = byId("trajectory");
let frames = [];
let view = null;
let colors = new Map();
let timer = 0;
let running = null;

export function setUpTrajectory() {
  byId("trajectory-play").addEventListener("click", () => (timer ? pause() : play()));
  byId("trajectory-step").addEventListener("input", (event) => {
    pause();
    show(Number(event.target.value));
  });
  dialog.addEventListener("close", () => {
    running?.abort();
    pause();
  });
}

/** Run the sampler of one sketch again and show its states. `request` holds seed, index and conditions. */
export async function playTrajectory(request, name) {
  const { count, round, ...options } = request;
  byId("trajectory-title").textContent = `How ${name} was made`;
  byId("trajectory-progress").hidden = false;
  byId("trajectory-controls").hidden = true;
  byId("trajectory-picture").replaceChildren();
  dialog.showModal();
  running = new AbortController();
  let found = null;
  const on = {
    progress: ({ done }) => (byId("trajectory-progress").value = done),
    sketch: (data) => (found = data),
  };
  await attempt(() => stream("/trajectory", { ...options, frames: FRAMES }, on, running.signal));
  if (!found) return dialog.close();
  byId("trajectory-progress").hidden = true;
  byId("trajectory-controls").hidden = false;
  return start(found.frames);
}

function start(all) {
  frames = all.filter((frame) => frame.items.length);
  const last = frames.at(-1).items;
  const box = boundsOf(last.map((item) => item.primitive));
  view = viewOf({ ...box, size: Math.max(box.size, 2) }, SIDE, 0.12);
  // Rows have the colors of the final sketch, in its order.
  const rows = [...new Set([...last.map((item) => item.row), ...frames.flatMap((frame) => frame.items.map((item) => item.row))])];
  colors = new Map(rows.map((row, number) => [row, number % 8]));
  const step = byId("trajectory-step");
  [step.max, step.value] = [frames.length - 1, 0];
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  show(isStill ? frames.length - 1 : 0);
  if (!isStill) play();
  byId("trajectory-play").focus();
}

function show(number) {
  const frame = frames[number];
  const visible = frame.items.filter((item) => item.probability > 0.03 && isDrawable(item.primitive));
  const paths = visible
    .sort((a, b) => a.probability - b.probability)
    .map(({ primitive, probability, row }) =>
      s("path", {
        class: `stroke hue-${colors.get(row)}${primitive.construction ? " construction" : ""}`,
        d: pathOf(primitive, view.toPixel, view.scale),
        opacity: (probability ** 0.75).toFixed(3),
      }),
    );
  byId("trajectory-picture").replaceChildren(...paths);
  byId("trajectory-picture").dataset.frame = number;
  byId("trajectory-step").value = number;
  const text = frame.t ? `step t = ${frame.t}` : "finished";
  byId("trajectory-text").textContent = text;
  byId("trajectory-step").setAttribute("aria-valuetext", text);
}

const isDrawable = (primitive) => (primitive.radius ?? 0) * view.scale < LONGEST * SIDE;

function play() {
  const step = byId("trajectory-step");
  if (Number(step.value) >= frames.length - 1) show(0);
  setPlaying(true);
  timer = setInterval(() => {
    const next = Number(step.value) + 1;
    if (next >= frames.length) pause();
    else show(next);
  }, SECONDS * 1000);
}

function pause() {
  clearInterval(timer);
  timer = 0;
  setPlaying(false);
}

function setPlaying(isPlaying) {
  const control = byId("trajectory-play");
  control.setAttribute("aria-label", isPlaying ? "Pause" : "Play");
  control.querySelector("use").setAttribute("href", `icons.svg#i-${isPlaying ? "pause" : "play"}`);
}
