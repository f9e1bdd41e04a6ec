// Dragging with live solving: one request is under way at a time, and the newest position of the pointer wins.

import { post } from "./api.js";
import { showMessage } from "./dom.js";
import { connected, merged, select } from "./sketch.js";
import { store } from "./store.js";

export class Drag {
  #before = store.sketch;
  #current = store.sketch;
  #target = null;
  #from;
  #running = null;
  #message = "";

  /** Drag a part of primitive `index`, grabbed at `from`. */
  constructor(index, part, from) {
    this.part = part;
    this.#from = from;
    // Only what constraints join to it can move with it: the solver needs no more.
    this.members = connected(store.sketch, [index]);
    this.number = this.members.indexOf(index);
  }

  move(to) {
    this.#target = to;
    this.#running ??= this.#pump();
  }

  async #pump() {
    while (this.#target) {
      const to = this.#target;
      this.#target = null;
      try {
        const sketch = select(this.#current, this.members);
        const answer = await post("/drag", { sketch, primitive: this.number, part: this.part, to, from: this.#from });
        this.#message = answer.moved ? "" : (answer.message ?? "");
        this.#from = to;
        this.#current = merged(this.#current, this.members, answer.sketch);
        store.preview(this.#current);
      } catch (error) {
        this.#target = null;
        showMessage(error.message, "error");
      }
    }
    this.#running = null;
  }

  /** Wait for the answer to the last position, and add one step to the history. */
  async end() {
    await this.#running;
    if (this.#message) showMessage(this.#message);
    if (this.#current !== this.#before) store.commit(this.#current, store.name, this.#before);
  }

  /** Show the sketch as it was before the drag. */
  async cancel() {
    this.#target = null;
    await this.#running;
    store.preview(this.#before);
  }
}
