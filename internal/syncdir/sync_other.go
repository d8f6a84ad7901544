//go:build !unix

package syncdir

// Sync does nothing: directories cannot be synced here.
func Sync(string) error { return nil }
