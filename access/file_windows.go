package access

import (
	"io/fs"
	"os"
)

// openWithoutWaiting is no flag: Windows has no named pipes among files.
const openWithoutWaiting = 0

// lockExclusively does nothing: Windows locks no folders. Change the file with one command at a time.
func lockExclusively(*os.File) error { return nil }

// writableByAll is false: on Windows the mode of a file does not show the rights of users.
func writableByAll(fs.FileInfo) bool { return false }

// syncFolder does nothing: Windows cannot sync a folder.
func syncFolder(*os.File) error { return nil }

// copyOwner does nothing: a new file has the rights of its folder.
func copyOwner(*os.File, string, fs.FileInfo) error { return nil }
