package main

import "log/slog"

// reservedFiles is how many open files a service needs beside the connections of its clients: those to the database (20
// unless its URL says otherwise), listeners, logs, and the files of keys and certificates while they are read.
const reservedFiles = 64

// warnOfFiles logs a warning if a process that may have limit files open cannot accept as many connections. The service
// runs all the same: the limit matters only once that many clients come.
func warnOfFiles(log *slog.Logger, limit uint64, connections int) {
	if limit >= uint64(connections)+reservedFiles {
		return
	}
	log.Warn("open-file limit is below --max-connections and the reserve; raise the limit (ulimit -n, LimitNOFILE=) or lower the flag",
		"open_files", limit, "max_connections", connections, "reserve", reservedFiles)
}
