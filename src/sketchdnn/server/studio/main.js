// The studio: sets up the page and joins its parts.

import { get, keepToken } from "./api.js";
import { Canvas, formatPosition } from "./canvas.js";
import { editDimension, setUpDimension } from "./dimension.js";
import { attempt, byId, h, hideMessage, loadIcons, showMessage } from "./dom.js";
import { setUpFiles } from "./files.js";
import { emptyMessage, generate, setUpGenerate } from "./generate.js";
import { setUpInspector } from "./inspector.js";
import { readLink } from "./permalink.js";
import { removeSelected, setUpShortcuts, switchConstruction } from "./shortcuts.js";
import { setUpSolving } from "./solving.js";
import { store } from "./store.js";
import { setUpSuggestions } from "./suggestions.js";
import { Tools } from "./tools.js";
import { setUpTracing, takeLimits } from "./tracing.js";
import { setUpTrajectory } from "./trajectory.js";

const THEME = "sketchdnn-theme";
const PANELS = ["inspect", "complete", "constrain", "repair", "trace"];
const root = document.documentElement;

function setUpTheme() {
  const chosen = localStorage.getItem(THEME);
  if (chosen) root.dataset.theme = chosen;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const show = () => byId("theme").querySelector("use").setAttribute("href", `icons.svg#i-${isDark() ? "sun" : "moon"}`);
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem(THEME, root.dataset.theme);
    show();
  });
  prefersDark.addEventListener("change", show);
  show();
}

/** The two views, and what the header shows of the open sketch. */
function setUpViews(canvas) {
  const show = () => {
    root.dataset.view = store.view;
    for (const view of ["generate", "sketch"]) {
      byId(`view-${view}`).setAttribute("aria-pressed", String(store.view === view));
      byId(`${view}-view`).hidden = store.view !== view;
    }
    document.title = store.view === "sketch" ? `${store.name} – SketchDNN studio` : "SketchDNN studio";
    if (store.view === "sketch") canvas.request();
  };
  for (const view of ["generate", "sketch"]) byId(`view-${view}`).addEventListener("click", () => store.setView(view));
  store.on("view", show);
  const showHistory = () => {
    byId("undo").disabled = !store.canUndo;
    byId("redo").disabled = !store.canRedo;
    byId("sketch-name").textContent = store.name;
    show();
  };
  store.on("committed", showHistory);
  byId("undo").addEventListener("click", () => store.undo());
  byId("redo").addEventListener("click", () => store.redo());
  byId("new").addEventListener("click", () => {
    store.open({ primitives: [], constraints: [], units: "mm" }, "New sketch");
    store.setView("sketch");
  });
  showHistory();
}

/** The tool bar, the buttons of the view and the status line. */
function setUpTools(canvas) {
  const bar = byId("tools");
  const drawing = [...bar.querySelectorAll("[data-tool]")];
  const tools = new Tools(canvas, {
    editDimension,
    onPosition: (at) => (byId("status-position").textContent = at ? formatPosition(at, canvas.scale, store.sketch.units) : ""),
    onHint: (text) => (byId("status-hint").textContent = text),
  });
  for (const control of drawing) control.addEventListener("click", () => store.setTool(control.dataset.tool));
  const show = () => {
    for (const control of drawing) control.setAttribute("aria-pressed", String(store.tool === control.dataset.tool));
    const chosen = store.selectedPrimitives();
    const isOn = chosen.length ? chosen.every((index) => store.sketch.primitives[index].construction) : tools.construction;
    byId("construction").setAttribute("aria-pressed", String(isOn));
    byId("remove").disabled = !chosen.length && !store.marked.size;
  };
  store.on("tool selection committed", show);
  byId("construction").addEventListener("click", () => switchConstruction(tools));
  byId("remove").addEventListener("click", removeSelected);
  byId("fit").addEventListener("click", () => canvas.fit());
  byId("zoom-in").addEventListener("click", () => canvas.zoom(1.25));
  byId("zoom-out").addEventListener("click", () => canvas.zoom(0.8));
  for (const control of document.querySelectorAll("[data-show]")) {
    const name = control.dataset.show;
    control.addEventListener("click", () => store.toggle(name));
    store.on("settings", () => control.setAttribute("aria-pressed", String(store.shows[name])));
  }
  show();
  return tools;
}

/** The panels at the side as tabs; arrows move between them. On a phone the open tab closes its panel. */
function setUpPanels(canvas) {
  const tabs = PANELS.map((name) => byId(`tab-${name}`));
  const side = byId("side");
  const show = (chosen, isOpen = true) => {
    PANELS.forEach((name, number) => {
      const isChosen = name === chosen;
      tabs[number].setAttribute("aria-selected", String(isChosen));
      tabs[number].tabIndex = isChosen ? 0 : -1;
      byId(`panel-${name}`).hidden = !isChosen;
    });
    side.dataset.open = String(isOpen);
    store.setGhost(null);
    canvas.request();
  };
  tabs.forEach((tab, number) => {
    tab.addEventListener("click", () => {
      const isAgain = tab.getAttribute("aria-selected") === "true" && side.dataset.open === "true";
      show(PANELS[number], !(isAgain && matchMedia("(max-width: 760px)").matches));
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = (number + step + tabs.length) % tabs.length;
      show(PANELS[next]);
      tabs[next].focus();
    });
  });
  show("inspect", !matchMedia("(max-width: 760px)").matches);
}

function setUpDialogs() {
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  byId("message-close").addEventListener("click", hideMessage);
  for (const dialog of document.querySelectorAll("dialog")) {
    for (const control of dialog.querySelectorAll("[data-close]")) control.addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }
  byId("link").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      showMessage("The link is copied. It opens these conditions and this seed.");
    } catch {
      showMessage(`Copy the address of this page: ${location.href}`);
    }
  });
}

/** Fill in what the server offers. */
async function readServer() {
  const [health, info] = await Promise.all([get("/health"), get("/info")]);
  root.dataset.model = health.model.name;
  byId("version").textContent = `SketchDNN ${health.version}, model ${health.model.name}`;
  const options = (list) => list.map((each) => h("option", { value: each }, each));
  byId("units").append(...options(info.units));
  byId("size-units").replaceChildren(...options(info.units));
  byId("size-units").value = "mm";
  byId("count").max = info.limits.count;
  takeLimits(info);
  const suffixes = [...info.read_formats.flatMap((format) => format.suffixes), ...info.picture_formats];
  byId("file").accept = suffixes.map((suffix) => `.${suffix.replace(/^\./, "")}`).join();
}

async function start() {
  await Promise.all([attempt(readServer), loadIcons()]);
  const form = byId("conditions");
  const link = readLink(form);
  if (link) {
    if (link.model && link.model !== root.dataset.model) showMessage(`This link was made with the model ${link.model}; here is ${root.dataset.model}.`);
    await generate();
  } else if (store.sketch.primitives.length) store.setView("sketch");
  addEventListener("hashchange", () => readLink(form) && generate());
  root.dataset.ready = "true";
}

keepToken();
setUpTheme();
const canvas = new Canvas(byId("canvas"));
setUpSolving();
setUpDimension(canvas);
setUpInspector();
setUpGenerate();
setUpSuggestions();
setUpTracing();
setUpTrajectory();
setUpFiles();
setUpShortcuts(canvas, setUpTools(canvas));
setUpViews(canvas);
setUpPanels(canvas);
setUpDialogs();
byId("cards-empty").replaceChildren(...emptyMessage());
store.restore();
canvas.fit();
start();
