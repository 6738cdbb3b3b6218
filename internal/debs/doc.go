// Package debs unpacks packages of Debian and Ubuntu into a directory, as an ordinary user and without installing
// anything. It is how Paddock fetches PostgreSQL where nothing else is at hand, and other tools for tests.
//
// apt-get chooses, downloads and verifies the packages, from the sources and with the keys of this system; its lists
// and its cache are in a folder of the user. dpkg-deb unpacks them. Scripts of the packages do not run, so this suits
// programs that need their files alone.
//
// The programs are started through small scripts, see Tree.Expose, which name the unpacked libraries.
package debs
