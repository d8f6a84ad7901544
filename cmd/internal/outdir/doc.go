// Package outdir keeps what a run of a command writes together in a directory.
//
// A directory holds one run at most: the files that octavo-run.json lists. They are
// written under another name and appear together when all are complete, that list
// last. Whoever finds it finds a whole run; a process that ends before leaves the files
// of an earlier run as they were. Files that no list names are never touched.
//
// While a run goes on, its directory is locked, so that no two write into the same.
// The lock is the system's and ends with the process: what a process that was killed
// left behind is tidied up by the next run in that directory, or is where that goes on.
package outdir
