// Package archtest has only tests, of the whole tree: which package may import which,
// what the module requires, which names are exported, and that assembly is clean.
package archtest
