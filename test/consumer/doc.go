// Package consumer builds a program as users of the Go SDK write it, and checks what such a program downloads and
// links.
package consumer
