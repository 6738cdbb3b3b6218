import type { Grant } from './acquisition.js';
import type { CallOptions, Paddock } from './client.js';
import type { Deadline } from './clock.js';
import { changed, PaddockError } from './error.js';
import type { News } from './hub.js';
import { sessionKind } from './kind.js';
import { notify } from './notify.js';
import { inOptions, throwInOptions, type SessionOptions, type State } from './options.js';
import { maxAttemptMs, type LeaseRef, type Renewable } from './renewal.js';
import type { Keeper } from './renewed.js';
import { Renewer } from './renewer.js';
import { LeaseState } from './state.js';
import { errorOf } from './transport.js';

/** maxBatch is the greatest number of items in a batch. */
const maxBatch = 1_000;

/** A SessionRef identifies a session. */
export interface SessionRef extends Omit<Renewable, 'renew'> {
  readonly paddock: Paddock;
  readonly sessionId: string;
}

/** A Heartbeat renews a session, with one timer for all of its leases, which follow its state and end with it. */
export class Heartbeat implements Keeper {
  readonly state: LeaseState;
  readonly #leases = new Set<Member>();
  readonly #bounded = new Set<Member>(); // those with a max_hold_ms
  readonly #renewer: Renewer;
  #guards = 0; // leases that keep the process running
  #failure: PaddockError | undefined;
  #search: 'none' | 'runs' | 'again' = 'none'; // for lost leases

  /** revokedLeases is that of the last answer. */
  constructor(private readonly ref: SessionRef, options: SessionOptions, deadline: Deadline, public revokedLeases: number) {
    this.state = new LeaseState(sessionKind, (state, error) => {
      this.#follow(state, error);
      notify(options.onState, state, ...(error ? [error] : []));
    }, undefined);
    // The first listener: the leases have ended when the caller's listeners run.
    this.state.signal.addEventListener('abort', () => this.#loseAll(), { once: true });
    const { onRetry, onRenewed } = options;
    const watched = { onRetry, onRenewed, keepsProcess: () => this.#guards > 0, watch: () => this.#watch() };
    this.#renewer = new Renewer({ ...ref, renew: (options) => this.#renew(options) }, this.state, watched, deadline);
  }

  get deadline(): Deadline {
    return this.#renewer.deadline;
  }

  check(): void {
    this.#renewer.check();
  }

  stop(): void {
    this.#renewer.stop();
  }

  hint(news: News): void {
    this.#renewer.hint(news);
  }

  keepProcess(): void {
    this.#renewer.keepProcess();
  }

  /** keepProcessFor makes a lease keep the process running until it ends. */
  keepProcessFor(member: Member): void {
    if (this.#leases.has(member) && !member.keepsProcess) {
      member.keepsProcess = true;
      this.#guards++;
      this.#renewer.reschedule();
    }
  }

  /** join makes a lease end with the session, or by itself at its own deadline. */
  join(ref: LeaseRef, state: LeaseState, { deadline, revokedLeases }: Grant, keepsProcess: boolean): Keeper {
    const member = new Member(this, ref, state, deadline, keepsProcess, revokedLeases);
    this.#leases.add(member);
    if (deadline.left() !== Infinity) {
      this.#bounded.add(member);
    }
    this.#guards += keepsProcess ? 1 : 0;
    if (this.#failure) {
      state.renewalFailed(this.#failure);
    }
    member.check();
    this.#renewer.reschedule();
    return member;
  }

  /** leave forgets a lease that has ended. */
  leave(member: Member): void {
    if (this.#leases.delete(member) && member.keepsProcess && --this.#guards === 0) {
      this.#renewer.reschedule();
    }
    this.#bounded.delete(member);
  }

  /** watch ends the leases whose own deadline has passed and returns the milliseconds until the next one. */
  #watch(): number {
    let next = Infinity;
    for (const member of this.#bounded) {
      member.checkOwn();
      next = Math.min(next, member.own.left());
    }
    return next;
  }

  /** follow puts the leases into the state of the session. */
  #follow(state: State, error: PaddockError | undefined): void {
    this.#failure = state === 'at_risk' ? error : undefined;
    for (const member of this.#leases) {
      if (state === 'at_risk' && error) {
        member.state.renewalFailed(error);
      } else if (state === 'held') {
        member.state.renewed();
      }
    }
  }

  #loseAll(): void {
    for (const member of [...this.#leases]) {
      member.checkSession();
    }
  }

  /** renew sends one renewal. If an operator has revoked leases of the session, it finds out which. */
  async #renew(options: CallOptions): Promise<{ expires_in_ms: number }> {
    const { paddock, sessionId } = this.ref;
    const session = await paddock.renewSession({ session_id: sessionId }, options).catch(throwInOptions);
    this.revokedLeases = session.revoked_leases;
    void this.#searchLost();
    return session;
  }

  /** searchLost searches for lost leases. While a search runs, it makes that one search once more: one at a time. */
  async #searchLost(): Promise<void> {
    if (this.#search !== 'none') {
      this.#search = 'again';
      return;
    }
    do {
      this.#search = 'runs';
      const revoked = this.revokedLeases;
      await this.#findLost([...this.#leases].filter((member) => member.heldAt < revoked), revoked);
    } while (this.#again());
    this.#search = 'none';
  }

  #again(): boolean {
    return this.#search === 'again';
  }

  /**
   * findLost asks for each lease whether it has ended. To renew a lease of a session moves nothing. Of several locks,
   * which end together, it asks for the first: while that is held, the answer is `lease_in_set`.
   */
  async #findLost(suspects: Member[], revokedLeases: number): Promise<void> {
    const { paddock } = this.ref;
    for (let start = 0; start < suspects.length; start += maxBatch) {
      const chunk = suspects.slice(start, start + maxBatch);
      const before = chunk.map(({ heldAt }) => heldAt);
      const items = chunk.map(({ ref }) => ({ op: 'renew' as const, name: ref.names[0]!, lease_id: ref.leaseId }));
      try {
        const { results } = await paddock.batch({ items }, { timeoutMs: maxAttemptMs, signal: this.state.signal });
        results.forEach(({ status, problem }, i) => {
          if (problem?.code === 'lease_lost') {
            chunk[i]!.lose(inOptions(errorOf(problem, status)) as PaddockError);
          } else if ((status === 200 || problem?.code === 'lease_in_set') && chunk[i]!.heldAt === before[i]) { // else a hint came after the question
            chunk[i]!.heldAt = revokedLeases;
          }
        });
      } catch {
        return; // the next renewal tries again
      }
    }
  }
}

/** A Member is a lease that a session keeps alive. */
class Member implements Keeper {
  constructor(
    private readonly heartbeat: Heartbeat,
    readonly ref: LeaseRef,
    readonly state: LeaseState,
    readonly own: Deadline,
    public keepsProcess: boolean,
    public heldAt: number, // the number of revoked leases of the session when it was last known to be held; negative after a hint
  ) {}

  get deadline(): Deadline {
    return this.own.earlier(this.heartbeat.deadline);
  }

  check(): void {
    this.heartbeat.check();
    this.checkSession();
    this.checkOwn();
  }

  /** checkSession ends the lease if its session has ended. */
  checkSession(): void {
    const ended = this.heartbeat.state.error;
    if (ended) {
      this.lose(changed(ended, { code: 'lease_lost', detail: `The lease ended with its session. ${ended.detail}`, cause: ended }));
    }
  }

  /** checkOwn ends the lease at its own deadline. */
  checkOwn(): void {
    if (this.own.passed()) {
      this.lose(new PaddockError('lease_lost', 'The lease has reached its maxHoldMs. Stop the work; to continue, acquire again.'));
    }
  }

  lose(error: PaddockError): void {
    this.stop();
    this.state.lose(error);
  }

  /** hint renews the session at once, and then asks whether the lease has ended without it. */
  hint(news: News): void {
    if (news !== 'joined') { // since then, the number of revoked leases tells of it
      this.heldAt = Math.min(this.heldAt, 0) - 1; // another number for each hint
    }
    this.heartbeat.hint(news);
  }

  keepProcess(): void {
    this.heartbeat.keepProcessFor(this);
  }

  stop(): void {
    this.heartbeat.leave(this);
  }
}
