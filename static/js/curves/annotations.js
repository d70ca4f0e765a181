// What happened to runs, as lines and bands on charts over time, and restarts on charts over steps.

import { fractionOf, plotWidth } from "../charts/coordinates.js";
import { fetchJson } from "../charts/series.js";

const NEAR_PX = 6;
const LETTER_PX = 6;
const EDGE_PX = 8;

export class Annotations {
  constructor() {
    this.answers = [];
  }

  /**
   * Fetches what happened to these runs, [{run, number}]. Keeps what is known of a run that cannot be fetched. Returns
   * whether anything has changed.
   */
  async load(runs) {
    const before = JSON.stringify(this.answers);
    const known = new Map(this.answers.map((answer) => [answer.run, answer]));
    this.answers = await Promise.all(
      runs.map(({ run, number }) =>
        fetchJson(`/api/v1/runs/${run}/annotations/`, {}).catch(
          () => known.get(run) ?? { run, number, start: 0, annotations: [] },
        ),
      ),
    );
    return JSON.stringify(this.answers) !== before;
  }

  /** Returns the events on an axis. Events of several runs begin with the run's number. */
  eventsOn(axis) {
    return eventsOn(axis, this.answers);
  }
}

/** Returns [{from, to, label, text, tone}] on an axis; `to` is null for a moment. `answers`: of the hub, one a run. */
export function eventsOn(axis, answers) {
  return answers.flatMap(({ number, start, annotations }) =>
    annotations.flatMap(({ at, until, is_open: isOpen, step, label, text, tone }) => {
      const span = placeOn(axis, { at, until: isOpen ? Infinity : until, step, start });
      const name = answers.length > 1 ? `${number}: ` : "";
      return span ? [{ from: span[0], to: span[1], label: name + label, text: name + text, tone }] : [];
    }),
  );
}

function placeOn(axis, { at, until, step, start }) {
  if (axis === "time") return [at, until];
  if (axis === "relative") return [at - start, until === null ? null : until - start];
  return axis === "step" && step !== null ? [step, null] : null;
}

/** Returns the events within the view, cut to it. */
export function visibleEvents(events, view) {
  return events
    .filter(({ from, to }) => from <= view.to && (to ?? from) >= view.from)
    .map((event) => ({
      ...event,
      from: Math.max(event.from, view.from),
      to: event.to === null ? null : Math.min(event.to, view.to),
    }))
    .sort((left, right) => left.from - right.from);
}

/**
 * Returns the events whose labels cover neither each other nor the right edge of the plot. Moments at its left edge,
 * such as the start of the run, have none: they would cover where the lines begin.
 */
export function labelledEvents(events, view) {
  let end = -Infinity;
  return events.filter(({ from, to, label }) => {
    const left = fractionOf(from, view) * plotWidth(view);
    if (to === null && left < EDGE_PX) return false;
    const right = left + (label.length + 2) * LETTER_PX;
    if (left < end || right > plotWidth(view)) return false;
    end = right;
    return true;
  });
}

/** Returns what happened at a place of the x axis, as sentences. */
export function textsAt(events, at, view) {
  const room = (NEAR_PX / plotWidth(view)) * (view.to - view.from);
  const isNear = ({ from, to }) => at >= from - room && at <= (to ?? from) + room;
  return events.filter(isNear).map(({ text }) => text);
}
