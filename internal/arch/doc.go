// Package arch has no code, only tests of the architecture: which package may import which, how long files and
// functions may be, and which words they use.
//
// All imports point at package lock, which imports only the standard library:
//
//	cmd/paddock ──▶ server ──▶ lock ◀── store ──▶ pgx
//	     │           web ──────▶ │
//	     └─────▶ client ───────▶ ┘
//	             client/guard ─▶ │
//	      pgx ◀─ client/pgfence ▶┘
//
// The tests check all dependencies, direct and indirect, as listed by go list. Test files may import any package.
package arch
