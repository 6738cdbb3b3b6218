// Package containers runs the conformance suite of paddock.Service on the official image of PostgreSQL, in Docker. It
// contains only tests.
//
// A machine where Docker does not run, or cannot get the image, skips them and says so, unless PADDOCK_REQUIRE_DOCKER
// is set, as in the nightly workflow: then they fail. All other tests use a PostgreSQL without Docker.
// -containers.image=postgres:16 uses another image.
package containers
