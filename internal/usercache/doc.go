// Package usercache is the folder where programs that Paddock fetches are kept: PostgreSQL for `paddock dev` and for
// tests, and other tools for tests.
//
// An entry is a directory that is complete or absent: it is filled under another name and then renamed. One process
// at a time fills entries; others wait for it. Nothing in the folder is needed: it may be removed at any time that
// no program in it runs.
package usercache
