// Draws charts one by one, each in a task of its own, so that the page handles input in between.

export class DrawQueue {
  /** Calls `draw(panel)` for one panel after the other. Returns false if a newer call has replaced this one. */
  async run(panels, draw) {
    const run = (this.current = {});
    for (const panel of panels) {
      draw(panel);
      await new Promise((resume) => setTimeout(resume));
      if (this.current !== run) return false;
    }
    return true;
  }
}
