//go:build purego || !(amd64 || arm64)

package microkernel

var byLevel = register()
