/**
 * A Mark is an instant on two clocks. `performance.now()` never jumps, but while the machine is suspended it stands
 * still in Node on Linux, and in browsers on some systems; Node's goes on on macOS and Windows. The wall
 * clock goes on everywhere, but may be set. A lease goes on, too.
 */
export interface Mark {
  readonly steady: number;
  readonly wall: number;
}

/** mark returns the present instant. */
export function mark(): Mark {
  return { steady: performance.now(), wall: Date.now() };
}

/**
 * since returns the milliseconds since then, by whichever clock saw more of them pass. So a suspension
 * is counted. A wall clock that is put forward looks the same and costs a lease, never two
 * holders; one that is put back hides as much of a suspension.
 */
export function since(then: Mark): number {
  return Math.max(performance.now() - then.steady, Date.now() - then.wall);
}

/** A Deadline is an instant some milliseconds after a mark. */
export class Deadline {
  constructor(
    private readonly from: Mark,
    private readonly ms: number,
  ) {}

  /** left returns the milliseconds until the deadline, not above zero once it has come. */
  left(): number {
    return this.ms - since(this.from);
  }

  over(): boolean {
    return this.left() <= 0;
  }

  /** date returns the deadline on the wall clock, for people. */
  date(): Date {
    return new Date(Date.now() + this.left());
  }
}
