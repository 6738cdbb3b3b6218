// Package arch has no code, only tests of what no single package can test: which package may import which, which one
// may write the tables of locks, in which order the rules are read, which modules users link, and that the documents and
// the image name what exists.
//
// All imports point at package lock, which imports only the standard library:
//
//	cmd/paddock ──▶ server ──▶ lock ◀── store ──▶ pgx
//	     │           web ──────▶ │ ◀─── cell
//	     └─────▶ client ───────▶ ┘
//	             client/guard ─▶ │
//	      pgx ◀─ client/pgfence ▶┘
//
// The tests check all dependencies, direct and indirect, as listed by go list. Test files may import any package.
package arch
