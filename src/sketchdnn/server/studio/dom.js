// Elements of the page. Texts are set as text, never as markup: names in files are not trusted.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...present(children));
  return element;
}

/** Children without gaps: lists in lists are flattened, and what is null, undefined or false is left out. */
const present = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

/** Put children in the place of those of an element. */
export const refill = (element, ...children) => element.replaceChildren(...present(children));

/** An HTML element; attributes such as `onclick` are listeners. */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** An SVG element. */
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

/** Put the icon file into the page: pictures that refer to it there are drawn without delay. */
export async function loadIcons() {
  const text = await (await fetch("icons.svg")).text();
  const icons = document.adoptNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement);
  for (const [name, value] of [["width", 0], ["height", 0], ["class", "icon-file"], ["aria-hidden", "true"]]) icons.setAttribute(name, value);
  document.body.append(icons);
}

/** A picture of the icon file, hidden from screen readers: its button has a label. */
export const icon = (name, size = 20) =>
  s("svg", { class: "icon", width: size, height: size, "aria-hidden": "true" }, s("use", { href: `#i-${name}` }));

/** A button that shows an icon only; its label is also its tooltip. */
export const iconButton = (name, label, onclick, attributes = {}) =>
  h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...attributes }, icon(name));

export const button = (label, onclick, attributes = {}) => h("button", { type: "button", class: "button", onclick, ...attributes }, label);

export const plural = (count, noun, many = `${noun}s`) => `${count} ${count === 1 ? noun : many}`;

let timer = 0;

/** Show a message and have screen readers read it. Messages of kind "error" and "busy" stay until the next one. */
export function showMessage(text, kind = "info") {
  const box = byId("message");
  clearTimeout(timer);
  box.dataset.kind = kind;
  byId(kind === "error" ? "message-alert" : "message-status").textContent = text;
  byId(kind === "error" ? "message-status" : "message-alert").textContent = "";
  box.hidden = false;
  if (kind === "info") timer = setTimeout(hideMessage, 6000);
}

export function hideMessage() {
  byId("message").hidden = true;
}

/** The result of `work`, or undefined after an error, which is shown; canceled work shows none. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") showMessage(error.message, "error");
    return undefined;
  }
}
