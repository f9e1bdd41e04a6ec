// Conditions as a request of the API, and as the fragment of the address, so that a link reproduces its sketches.

import { byId } from "./dom.js";

const KINDS = ["line", "circle", "arc", "point"];
const FLAGS = ["closed", "novel", "unique"];
const NUMBERS = ["count", "seed", "best_of", "steps"];
const WORDS = ["construction", "aspect", "round", "quality"];

const text = (form, name) => form.elements[name].value.trim();

/** What the form asks for; fields that are empty are left out. */
export function conditionsOf(form) {
  const request = {};
  for (const name of NUMBERS) if (text(form, name)) request[name] = Number(text(form, name));
  for (const name of FLAGS) if (form.elements[name].checked) request[name] = true;
  const [least, most] = [text(form, "least"), text(form, "most")];
  if (least || most) request.primitives = least === most ? least : `${least || 1}..${most || 16}`;
  const kinds = KINDS.filter((kind) => text(form, kind)).map((kind) => `${kind}=${text(form, kind)}`);
  if (kinds.length) request.kinds = kinds.join();
  for (const name of WORDS) if (text(form, name)) request[name] = text(form, name).replaceAll(",", ".");
  if (text(form, "size")) request.size = Number(text(form, "size").replace(",", "."));
  if (text(form, "units") !== "mm") request.units = text(form, "units");
  if (!form.elements.repair.checked) request.repair = false;
  return request;
}

/** Put a request into the form. */
function fillForm(form, request) {
  form.reset();
  for (const name of [...NUMBERS, ...WORDS, "size", "units"]) if (request[name] !== undefined) form.elements[name].value = request[name];
  for (const name of FLAGS) form.elements[name].checked = request[name] === "true";
  form.elements.repair.checked = request.repair !== "false";
  if (request.primitives) {
    const [least, most] = request.primitives.split("..");
    [form.elements.least.value, form.elements.most.value] = [least, most ?? least];
  }
  for (const part of request.kinds?.split(",") ?? []) {
    const [kind, number] = part.split("=");
    if (KINDS.includes(kind)) form.elements[kind].value = number;
  }
  const isAdvanced = ["quality", "steps", "best_of", "construction", "aspect", "round", "repair"].some((name) => request[name] !== undefined);
  byId("more-conditions").open ||= isAdvanced;
}

/** Write a request into the address. */
export function writeLink(request) {
  const fields = new URLSearchParams({ model: document.documentElement.dataset.model ?? "", ...request });
  history.replaceState(null, "", `#${fields}`);
}

/** Fill the form from the address. Returns {model} if the address holds a request, else null. */
export function readLink(form) {
  const request = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (request.seed === undefined) return null;
  fillForm(form, request);
  return { model: request.model ?? "" };
}
