//go:build !purego

package cpu

const pure = false
