package main

// Help shows how to use it, and what can be relied on.
func (runCommand) Help() string {
	return `paddock run [flags] NAME -- CMD ARGS…

Runs a command while it holds a lock: takes the lock, keeps the lease alive, stops the command before the lease can end, and releases the lock when nothing ` +
		`that the command has started is left. If somebody else has the lock it does nothing, or waits for it with --wait.

A line for cron, on each of many machines; one of them does the work:

    */5 * * * *  paddock run --url http://locks.example:8080 jobs:mail -- /usr/local/bin/send-mail

Wait for the lock, up to ten minutes, and give the command a quarter of a minute to end if the lock is lost:

    paddock run --wait 10m --ttl 1m --kill-after 15s db:migrate -- ./migrate up

A systemd service, where 75 (somebody else does it) is no failure:

    [Service]
    ExecStart=/usr/local/bin/paddock run --wait forever jobs:billing -- /usr/local/bin/billing
    KillMode=mixed
    SuccessExitStatus=75

The command finds in its environment PADDOCK_LOCK, PADDOCK_FENCING_TOKEN, PADDOCK_HOLDER, PADDOCK_URL and, of a shared lease or a permit, PADDOCK_SLOT. It has our ` +
		`standard input and outputs, and a process group of its own. SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to all of that group.

The lease is lost when it cannot be renewed in time (an outage that is shorter than that stops nobody), when an operator revokes it, and when --max-hold is over. ` +
		`A command that loses it is sent SIGTERM, and SIGKILL after --kill-after; that is over before the lease is. If the lease has ended already, because it was revoked, or this ` +
		`process was stopped for too long, the command is killed at once, for somebody else may have the lock.

Locks are not re-entrant: a paddock run of the same lock in the command is refused.

What the command leaves running when it ends is stopped the same way before the lock is released, also a daemon in a session of its own (on Linux): ` +
		`the lock guards that too. If paddock itself is killed with SIGKILL, Linux kills the command, but not what that has started. While paddock is stopped (SIGSTOP) it guards nothing; ` +
		`then only the fencing token does, where the write lands.

Exit codes: those of the command, and 128+n if signal n ended it. Besides, 64: the command line is wrong. 69: the service cannot be reached. 75: somebody else has the lock. ` +
		`76: the lease was lost, whatever the command said. 77: not allowed. 126: the command cannot be executed. 127: it was not found. If a signal n comes while it waits for the lock, 128+n.`
}
