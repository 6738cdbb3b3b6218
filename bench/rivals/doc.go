// Package rivals lists the other systems that are compared with Paddock.
package rivals
