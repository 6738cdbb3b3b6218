// Package supervise runs a command that must not outlive a lease, as paddock run does.
//
// # Process tree
//
// The command gets a process group of its own. Everything that it starts, directly or not, belongs to its process
// tree, and the lock covers all of it: Command.Run returns when no process of the tree is left. A process may leave
// the group, for example as a daemon. On Linux such descendants are found nevertheless, because this process becomes
// the subreaper of the tree: a descendant whose parent ends becomes our child. Elsewhere only the group is known.
//
// # Stages
//
//	running      the command runs; signals that we receive are passed on to its group
//	lingering    the command has ended; its descendants have half a second to end by themselves
//	terminating  all descendants were sent SIGTERM
//	killing      all descendants are sent SIGKILL, until none is left
//
// If the lease is lost, running is followed by terminating, and by killing early enough that no descendant is left
// when the lease ends. If the service reports that the lease was revoked, no descendant is left when its grace ends. If
// the lease has already ended without a grace, or if this process was suspended for so long that it is about to end,
// killing follows at once.
//
// # Signals
//
// Signals that ask this process to end, and SIGUSR1, SIGUSR2 and SIGWINCH, are passed on to the command's group. A
// SIGHUP or SIGINT that this process inherited as ignored stays ignored, here and by the command, as a shell and nohup
// mean it. The Go runtime keeps this of no other signal: those are passed on, and have their default action in the
// command.
//
// # Terminal
//
// If there is a controlling terminal, the command's group becomes its foreground group, as a shell does it for a job.
// If the command is stopped (Ctrl-Z), its descendants and we stop too, so that the shell sees its job stop. The lease
// is not renewed then; a command whose lease was lost meanwhile is not continued but killed.
//
// # Exit codes
//
// Result.ExitCode is that of the command, or 128+n if signal n ended it. A command that cannot be started is a
// StartError with the exit code that a shell would have: 127 if it was not found, 126 if it cannot be executed.
//
// # Not guaranteed
//
// A process that this one may not signal is only waited for. If this process is killed with SIGKILL, Linux kills the
// command, but not its descendants; other systems kill neither. While this process is suspended it stops nothing:
// then only the fencing token protects the data.
package supervise
