// Package arch holds no code, only the tests that keep the shape of the house:
// which package may know which, and how long a file and a function may be.
//
// Every arrow points at package lock, which knows nobody:
//
//	cmd/paddock ──▶ server ──▶ lock ◀── store ──▶ pgx
//	     │           web ──────▶ │
//	     └─────▶ client ───────▶ ┘
//	             client/guard ─▶ │
//	      pgx ◀─ client/pgfence ▶┘
//
// What a package depends on is asked of go list, by way of others included, so
// that no arrow hides behind another package. Tests are no part of that: they may
// know everything.
package arch
