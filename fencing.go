package paddock

import _ "embed"

// InstallFence is docs/fencing/install.sql: SQL that puts paddock_fence and what
// belongs to it into a database of the user's, in the first schema of the
// search_path. It is one transaction, and may be run again.
//
//go:embed docs/fencing/install.sql
var InstallFence string

// UninstallFence is docs/fencing/uninstall.sql, which undoes InstallFence.
//
//go:embed docs/fencing/uninstall.sql
var UninstallFence string
