import type { Code } from './error.js';

/** A Kind has the codes and texts in which leases and sessions differ. */
export interface Kind {
  /** The code with which the service says that it has ended, and with which it counts as lost. */
  readonly lost: Code;
  /** The detail of the loss at the deadline. */
  readonly overdue: string;
  /** The code after its holder has ended it. */
  readonly released: Code;
  /** The detail after its holder has ended it. */
  readonly ended: string;
  /** Whether it stays at the service after its holder has lost it. */
  readonly staysWhenLost?: true;
}

export const leaseKind: Kind = {
  lost: 'lease_lost',
  overdue: 'The lease could not be renewed in time and may have ended. Stop the work; to continue, acquire again and use the new token.',
  released: 'lease_released',
  ended: 'The lease was released. Stop the work; to continue, acquire again.',
};

/** suspectKind is that of a lease with `onExpiry: 'hold'`, which its holder does not release after a loss. */
export const suspectKind: Kind = {
  ...leaseKind,
  overdue: 'The lease could not be renewed in time. Stop the work. The lock becomes suspect: no other client is granted it until an '
    + 'operator has looked at the work and revokes the lease.',
  staysWhenLost: true,
};

export const sessionKind: Kind = {
  lost: 'session_lost',
  overdue: 'The session could not be renewed in time and may have ended, and its leases with it. Stop all of its work; to continue, open a new session.',
  released: 'session_closed',
  ended: 'The session was closed. Stop all of its work; to continue, open a new session.',
};
