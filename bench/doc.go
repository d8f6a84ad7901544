// Package bench measures octavo and compares it with its peers. It is a module
// of its own, so that what it needs is not what the library needs.
package bench
