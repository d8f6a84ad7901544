// Package archtest has only tests, of the whole tree: which package may import which,
// what the module requires, and that assembly is clean.
package archtest
