//go:build purego || !amd64

package integer

var byLevel = register()
