package paddock

import _ "embed"

// InstallFence is docs/fencing/install.sql, which installs paddock_fence and its tables into a user's database, in the
// first schema of the search_path. It is one transaction and may be run again.
//
//go:embed docs/fencing/install.sql
var InstallFence string

// UninstallFence is docs/fencing/uninstall.sql, which undoes InstallFence.
//
//go:embed docs/fencing/uninstall.sql
var UninstallFence string
