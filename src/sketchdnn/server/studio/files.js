// Files: open by button or by dropping, and export in real size.

import { exportFile, readFile } from "./api.js";
import { attempt, byId, h, plural, showMessage } from "./dom.js";
import { showFile } from "./generate.js";
import { normalized } from "./sketch.js";
import { store } from "./store.js";
import { isPicture, traceFile } from "./tracing.js";

// Formats that hold a solid need a height.
const SOLID = new Set(["step", "stl"]);
const dialog = byId("export-dialog");
const form = byId("export-form");
let items = [];
/** The file that was opened last; answers for earlier files are dropped. */
let newest = null;

export function setUpFiles() {
  const input = byId("file");
  byId("open").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files.length) openFile(input.files[0]);
    input.value = "";
  });
  const zone = byId("drop");
  let depth = 0;
  const isFile = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragenter", (event) => {
    if (!isFile(event)) return;
    depth += 1;
    zone.hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (!isFile(event)) return;
    depth -= 1;
    if (depth <= 0) zone.hidden = true;
  });
  addEventListener("dragover", (event) => isFile(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    [depth, zone.hidden] = [0, true];
    if (event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
  });
  byId("export").addEventListener("click", () => openExport([{ sketch: store.sketch, name: fileName(store.name) }], "one"));
  form.addEventListener("change", showOptions);
  form.addEventListener("submit", (event) => {
    if (event.submitter?.value !== "save") return;
    event.preventDefault();
    attempt(save);
  });
}

/** Trace a picture; read any other file on the server: one sketch is opened, several are shown as cards. */
async function openFile(file) {
  if (isPicture(file)) {
    newest = file;
    await traceFile(file);
    return;
  }
  const suffix = /\.(jsonl\.(?:gz|xz)|onshape\.json|corpus\.jsonl|[^.]+)$/i.exec(file.name)?.[1].toLowerCase() ?? "";
  newest = file;
  showMessage(`Reading ${file.name} …`, "busy");
  const answer = await attempt(() => readFile(file, suffix));
  if (!answer || newest !== file) return;
  const sketches = answer.sketches.map(normalized);
  const skipped = (answer.skipped ?? []).map(({ reason, count }) => `${count} skipped: ${reason}`);
  const notes = [...skipped, ...(answer.notes ?? [])];
  if (!sketches.length) {
    showMessage(`${file.name} holds no sketch${listed(notes)}.`, "error");
    return;
  }
  if (sketches.length === 1) {
    store.open(sketches[0], file.name);
    store.setView("sketch");
  } else showFile(file.name, sketches);
  const what = sketches.length === 1 ? plural(sketches[0].primitives.length, "primitive") : plural(sketches.length, "sketch", "sketches");
  showMessage(`${file.name}: ${what}${listed(notes)}.`);
}

const listed = (notes) => notes.map((note) => `; ${note}`).join("");

const fileName = (name) => name.replace(/\.[a-z]+$/i, "").replace(/[^\p{L}\p{N}]+/gu, "_").replace(/^_+|_+$/g, "") || "sketch";

/** Ask for a format. `what` is "one" or "all"; `sketches` are {sketch, name}. */
export function openExport(sketches, what) {
  items = sketches.filter((item) => item.sketch.primitives.length);
  if (!items.length) {
    showMessage("There is nothing to export: the sketch is empty.", "error");
    return;
  }
  byId("export-title").textContent = what === "all" ? `Export ${items.length} sketches` : "Export the sketch";
  byId("export-text").textContent = what === "all" ? "A zip with one file for each sketch, in real size." : `“${store.name}”, in real size.`;
  showOptions();
  dialog.showModal();
}

function showOptions() {
  byId("export-height").hidden = !SOLID.has(form.elements.format.value);
}

async function save() {
  const format = form.elements.format.value;
  const body = { sketches: items.map((item) => item.sketch), names: items.map((item) => item.name), format };
  if (SOLID.has(format)) {
    const height = Number(form.elements.height.value.replace(",", "."));
    if (!(height > 0)) throw new Error("The height of the solid is a number of millimeters above zero.");
    body.height = height;
  }
  const control = byId("export-save");
  control.disabled = true;
  try {
    const { blob, name, notes } = await exportFile(body);
    const link = h("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    dialog.close();
    showMessage(`Saved ${name}${listed(notes)}.`);
  } finally {
    control.disabled = false;
  }
}
