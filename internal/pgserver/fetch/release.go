//go:build unix

package fetch

import (
	"runtime"
	"slices"
	"strings"
)

// A Release is a version of PostgreSQL that was packed for some systems. Its programs are postgres, initdb and pg_ctl.
type Release struct {
	Version string
	Builds  map[string]Build // by GOOS/GOARCH
}

// A Build is a release for one system.
type Build struct {
	Digest string // of the programs, see digest
	MB     int    // of the larger of the two archives
}

// DefaultMajor is the version to fetch if any will do.
const DefaultMajor = "17"

// npmRevision ends the versions of the packages of npm.
const npmRevision = "beta.17"

// Releases returns the releases that can be fetched, one of each major version. The archives of both kinds of Mac
// contain the same programs.
func Releases() []Release {
	return []Release{
		{"18.4", map[string]Build{
			"linux/amd64":  {"93b6cf365b9bc4407b01a29786689133373eeedd6b8cc10992a37b890af69758", 24},
			"linux/arm64":  {"e589ef3488d46204c7eaab2744ad94071e4953fdcfdadf39108b37e368a881a5", 23},
			"darwin/amd64": {"e481b791d19863c8d5f8ad32cab77d50de16bff42a705c4b5eed0123c05733fa", 55},
			"darwin/arm64": {"e481b791d19863c8d5f8ad32cab77d50de16bff42a705c4b5eed0123c05733fa", 55},
		}},
		{"17.10", map[string]Build{
			"linux/amd64":  {"5045ba96b5a001310f6e70c8735fc79444cf1a091be565e9278cd02a74024b11", 24},
			"linux/arm64":  {"2cc00f1a84eb8b0374872af1db7cd1536560c94a94b0e4a4d652dbf29e63587b", 23},
			"darwin/amd64": {"45f6e61ffddf5aefdfb8dd7b2232cc5594b5142e43d75d3c24b94707873907b5", 51},
			"darwin/arm64": {"45f6e61ffddf5aefdfb8dd7b2232cc5594b5142e43d75d3c24b94707873907b5", 51},
		}},
		{"16.14", map[string]Build{
			"linux/amd64":  {"766c22dcdfdc7c415028cfd9042fcffd3311edb65d8334ceb74f476bb639b08f", 23},
			"linux/arm64":  {"5dd1030ab3fb5a457d9ba0a2a51ea3085ccfbd897b6a32f83300219ca8274f36", 22},
			"darwin/amd64": {"579411576770da6d42a1965d1319c32f1ea6fb0d7f0d44863dff02137a100dce", 51},
			"darwin/arm64": {"579411576770da6d42a1965d1319c32f1ea6fb0d7f0d44863dff02137a100dce", 51},
		}},
		{"15.18", map[string]Build{
			"linux/amd64":  {"3c2b34d9a21b14c613915d735e58d8fc1835c9c0cf468cc148585b47de57912b", 23},
			"linux/arm64":  {"86450f335f0bba75f89976c5775fc239ecf46f7c89a2f9096149459f46ff14d6", 22},
			"darwin/amd64": {"9831ac84953efd430f21d06fbaa2f3b4f0ce11e23416ca436a976dba2f401118", 51},
			"darwin/arm64": {"9831ac84953efd430f21d06fbaa2f3b4f0ce11e23416ca436a976dba2f401118", 51},
		}},
		{"14.23", map[string]Build{
			"linux/amd64": {"9b966d397ca6bebcb6c36f79dbb85ec8cd342966b3cbf68b494cfb536b1726f6", 23},
		}},
	}
}

// A build is a release for this system.
type build struct {
	Build

	version string
}

// find returns the build of a major version for this system.
func find(releases []Release, major string) (b build, ok bool) {
	for _, r := range releases {
		if m, _, _ := strings.Cut(r.Version, "."); m == major {
			b, ok := r.Builds[runtime.GOOS+"/"+runtime.GOARCH]
			return build{b, r.Version}, ok
		}
	}
	return build{}, false
}

// has reports whether the programs are among those of every build.
func (b build) has(programs []string) bool {
	return !slices.ContainsFunc(programs, func(name string) bool {
		return !slices.Contains([]string{"postgres", "initdb", "pg_ctl"}, name)
	})
}

// mavenName returns this system's part of the names of archives.
func mavenName() string {
	arch := map[string]string{"amd64": "amd64", "arm64": "arm64v8"}[runtime.GOARCH]
	return runtime.GOOS + "-" + arch
}

// npmName returns this system's part of the names of packages.
func npmName() string {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	return runtime.GOOS + "-" + arch
}
