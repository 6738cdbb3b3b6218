// Package status reads how a database is, for operators: the newest epoch, the replicas, the server with its standbys,
// and what the tables of the service need. It decides nothing, and nothing rests on it.
//
// # What is known when
//
//	the database                      the answer
//	answers                           what was read within the last second
//	does not answer, or refuses       what was read last, how long ago that was, and the problem
//	was never read                    the problem alone
//	is a standby                      what it has, and that it is a standby
//
// So that there is something to tell when a fail-over is under way, a [Reader] also reads by itself, once a minute.
//
// # What the role may see
//
//	part                              needs
//	epoch, replicas, oldest event     the rights that the service needs anyway
//	the server                        no right, unless functions of PostgreSQL were taken away from all roles
//	standbys                          pg_read_all_stats, which pg_monitor contains
//	sizes of tables                   no right; waits for a table that another session has locked exclusively
//
// A part that cannot be read is missing, and the answer says why. It costs no other part.
//
// # Bounds
//
// One read runs at a time, and takes two seconds at most; calls that come meanwhile wait for its result. However many
// operators look, the database is read once a second.
package status
