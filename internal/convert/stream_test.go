package convert

import (
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/stretchr/testify/require"
)

func TestStreamThreshold(t *testing.T) {
	caches := func(kib ...int) (list []cpu.Cache) {
		for i, k := range kib {
			list = append(list, cpu.Cache{Level: i + 1, Bytes: k << 10})
		}
		return list
	}
	for _, c := range []struct {
		caches []cpu.Cache
		kib    int
	}{
		{caches(32, 1024, 36608), 8192}, // 8 times level 2 of Cascade Lake
		{caches(48, 1024, 16384), 4096}, // a quarter of level 3
		{caches(48, 2048, 4096), 4096},  // twice level 2
		{caches(32, 256, 2048), 512},
		{caches(32, 512), 1024}, // nothing behind level 2
	} {
		require.Equal(t, c.kib<<10, streamThreshold(c.caches), "%v", c.caches)
	}
	at := streamThreshold(cpu.Caches())
	require.True(t, Streams(at))
	require.False(t, Streams(at-1))
}
