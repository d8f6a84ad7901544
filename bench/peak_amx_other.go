//go:build !amd64

package bench

func spinInTiles() (products int64) { return 0 }
