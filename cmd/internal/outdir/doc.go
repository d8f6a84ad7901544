// Package outdir keeps what a run of a command writes together in a directory.
//
// A directory holds one run at most: the files that octavo-run.json lists. They are
// written under another name and appear together when all are complete, that list
// last. Whoever finds it finds a whole run; a process that ends before leaves the files
// of an earlier run as they were. Files that no list names are never touched.
//
// A run may publish files that show how far it is: octavo-live.json lists those. They have names
// of their own, so that an earlier run stays as it was, and go when the run ends.
//
// While a run goes on, its directory is locked, so that no two write into the same.
// The lock is the system's and ends with the process: what a process that was killed
// left behind is tidied up by the next run in that directory, or is where that goes on.
package outdir
