//go:build !linux

package memory

func useLargePages([]byte) {}
