//go:build !race

package database

const slowness = 1
