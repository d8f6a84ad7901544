// Package terminaltest is a terminal for tests, with nobody before it.
package terminaltest
