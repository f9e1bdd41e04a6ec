// Calls of the server's HTTP API. The message of an error is the sentence that the server sent.

const BASE = "/api/v1";
const TOKEN = "sketchdnn-token";

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Keep a token of the address (#token=TOKEN) for this tab, and remove it from the address. */
export function keepToken() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.has("token")) return;
  sessionStorage.setItem(TOKEN, fields.get("token"));
  fields.delete("token");
  history.replaceState(null, "", `#${fields}`);
}

async function request(path, { method = "POST", body, type = "application/json", accept = "application/json", signal } = {}) {
  const headers = { Accept: accept };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = type;
  let response;
  try {
    response = await fetch(BASE + path, { method, headers, body, signal, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer. Start it again with “sketchdnn studio”.", 0);
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

async function errorOf(response) {
  let sentence = "";
  try {
    sentence = (await response.json()).error;
  } catch {
    // Not one of the API's own answers.
  }
  const wait = response.headers.get("Retry-After");
  let hint = wait ? ` Try again in ${wait} s.` : "";
  if (response.status === 401) hint = " Open this page with #token=TOKEN at the end of its address.";
  return new ApiError((sentence || `The server answered with status ${response.status}.`) + hint, response.status);
}

export const get = async (path) => (await request(path, { method: "GET" })).json();

export const post = async (path, body, signal) => (await request(path, { body: JSON.stringify(body), signal })).json();

/** The sketches in a file. */
export async function readFile(file, format, units) {
  const query = new URLSearchParams({ format, ...(units ? { units } : {}) });
  const response = await request(`/read?${query}`, { body: file, type: "application/octet-stream" });
  return response.json();
}

/** The sketch of a picture, and the picture as it was straightened. `options` are those of the call. */
export async function tracePicture(picture, options, signal) {
  const query = new URLSearchParams(options);
  const response = await request(`/trace?${query}`, { body: picture, type: "application/octet-stream", signal });
  return response.json();
}

/** A file made of sketches: {blob, name, notes}. */
export async function exportFile(body) {
  const response = await request("/export", { body: JSON.stringify(body), accept: "*/*" });
  const disposition = response.headers.get("Content-Disposition") ?? "";
  const name = /filename\*?=(?:UTF-8'')?"?([^";]+)"?/i.exec(disposition)?.[1] ?? `sketch.${body.format}`;
  let notes = [];
  try {
    notes = JSON.parse(response.headers.get("X-Notes") ?? "[]");
  } catch {
    // The file is complete without its notes.
  }
  return { blob: await response.blob(), name: decodeURIComponent(name), notes };
}

/**
 * A call of the model. `on` has handlers by event: job, progress, sketch, done.
 * Resolves with the data of `done`; aborting the signal cancels the job.
 */
export async function stream(path, body, on, signal) {
  const response = await request(path, { body: JSON.stringify(body), accept: "text/event-stream", signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let [rest, done] = ["", null];
  for (;;) {
    const chunk = await reader.read();
    if (chunk.done) break;
    const events = (rest + chunk.value.replaceAll("\r\n", "\n")).split("\n\n");
    rest = events.pop();
    for (const text of events) {
      const { name, data } = parseEvent(text);
      if (name === "error") throw new ApiError(data.error, data.status);
      if (name === "done") done = data;
      if (name) on[name]?.(data);
    }
  }
  if (!done) throw new ApiError("The server ended before the work was done. Try again.", 0);
  return done;
}

function parseEvent(text) {
  let name = "";
  const data = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).trim());
  }
  return { name: data.length ? name || "message" : "", data: data.length ? JSON.parse(data.join("\n")) : null };
}
