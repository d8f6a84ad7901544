// Package syncdir puts on disk which files a directory has, where the system can.
package syncdir
