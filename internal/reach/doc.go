// Package reach says why a client of the service has no connection to it, and what to do next.
//
// The errors of Go's packages net and crypto name system calls and fields of certificates. People who run a command
// need the setting that is wrong: the URL, the authority to trust, or the network in between.
package reach
