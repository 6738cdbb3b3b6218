// Package rivals lists the systems of others that are measured beside Paddock.
package rivals
