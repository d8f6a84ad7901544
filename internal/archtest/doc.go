// Package archtest has only tests, of the whole tree: which package may import which,
// what the module requires, which names are exported, that assembly is clean, and that
// pages name what there is.
package archtest
