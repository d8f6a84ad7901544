//go:build purego || !(amd64 || arm64)

package integer

var byLevel = register()
