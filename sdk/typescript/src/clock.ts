/**
 * A Mark is an instant on two clocks. `performance.now()` never jumps, but it stops while the machine is suspended in
 * Node on Linux and in browsers on some systems; in Node on macOS and Windows it continues. The wall clock continues
 * everywhere, but can be set. A lease on the service keeps running during a suspension.
 */
export interface Mark {
  readonly steady: number;
  readonly wall: number;
}

/** mark returns the current instant. */
export function mark(): Mark {
  return { steady: performance.now(), wall: Date.now() };
}

/**
 * since returns the milliseconds since the mark, by whichever clock advanced more, so that a suspension is counted. A
 * wall clock set forward looks the same: it can cost a lease, but never allows two holders. A wall clock set back
 * hides that much of a suspension.
 */
export function since(then: Mark): number {
  return Math.max(performance.now() - then.steady, Date.now() - then.wall);
}

/** A Deadline is the instant a number of milliseconds after a mark. */
export class Deadline {
  constructor(
    private readonly from: Mark,
    private readonly ms: number,
  ) {}

  /** left returns the milliseconds until the deadline; zero or less once it has passed. */
  left(): number {
    return this.ms - since(this.from);
  }

  /** earlier returns the one of the two that passes first. */
  earlier(other: Deadline | undefined): Deadline {
    return other !== undefined && other.left() < this.left() ? other : this;
  }

  passed(): boolean {
    return this.left() <= 0;
  }

  /** date returns the deadline on the wall clock, for people. */
  date(): Date {
    return new Date(Date.now() + this.left());
  }
}
