// Package shell uses Paddock as people do in a shell: with curl, psql, openssl and the built program. It runs the
// commands that docs/access.md, docs/tour.md and paddock dev print, and the SQL of paddock fence. It contains only tests.
package shell
