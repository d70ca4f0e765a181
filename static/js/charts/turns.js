// One task for each chart: whoever clicks meanwhile is heard in between.

export class Turns {
  /** Calls `draw` for one after the other; false where a newer call has taken over before the end. */
  async take(panels, draw) {
    const turn = (this.turn = {});
    for (const panel of panels) {
      draw(panel);
      await new Promise((resume) => setTimeout(resume));
      if (this.turn !== turn) return false;
    }
    return true;
  }
}
