// Package shell uses Paddock as people do in a shell: with curl, psql, openssl and the built program. It runs the
// commands of README.md, docs/tour.md, docs/access.md and those that paddock dev prints, and the SQL of paddock fence. It
// contains only tests.
package shell
