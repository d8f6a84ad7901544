package cpu

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// registers are EAX, EBX, ECX and EDX, by leaf and subleaf.
type registers map[[2]uint32][4]uint32

func (r registers) cpuid(leaf, sub uint32) (a, b, c, d uint32) {
	x := r[[2]uint32{leaf, sub}]
	return x[0], x[1], x[2], x[3]
}

const (
	kibi = 1 << 10
	mebi = 1 << 20
)

// What some processors answer, from what their makers publish.
var (
	cascadeLake = registers{
		{0, 0}:           {0x16},
		{4, 0}:           {0x7C004121, 0x01C0003F, 63, 0},
		{4, 1}:           {0x7C004122, 0x01C0003F, 63, 0},
		{4, 2}:           {0x7C004143, 0x03C0003F, 1023, 0},
		{4, 3}:           {0x7C0FC163, 0x0280003F, 40959, 4},
		{0x8000_0000, 0}: {0x8000_0008},
	}
	sapphireRapids = registers{
		{0, 0}:           {0x20},
		{4, 0}:           {0xFC004121, 0x02C0003F, 63, 0},
		{4, 1}:           {0xFC004122, 0x01C0003F, 63, 0},
		{4, 2}:           {0xFC004143, 0x03C0003F, 2047, 0},
		{4, 3}:           {0xFC1FC163, 0x0380003F, 114687, 4},
		{0x8000_0000, 0}: {0x8000_0008},
	}
	haswell = registers{
		{0, 0}:           {0x0D},
		{4, 0}:           {0x1C004121, 0x01C0003F, 63, 0},
		{4, 1}:           {0x1C004122, 0x01C0003F, 63, 0},
		{4, 2}:           {0x1C004143, 0x01C0003F, 511, 0},
		{4, 3}:           {0x1C03C163, 0x03C0003F, 8191, 6},
		{0x8000_0000, 0}: {0x8000_0008},
	}
	zen5 = registers{
		{0, 0}:           {0x10},
		{0x8000_0000, 0}: {0x8000_0028},
		{0x8000_0001, 0}: {0x00B40F40, 0, 0x75C237FF, 0x2FD3FBFF},
		{0x8000_001D, 0}: {0x00004121, 0x02C0003F, 63, 0},
		{0x8000_001D, 1}: {0x00004122, 0x01C0003F, 63, 0},
		{0x8000_001D, 2}: {0x00004143, 0x03C0003F, 1023, 2},
		{0x8000_001D, 3}: {0x0003C163, 0x03C0003F, 32767, 1},
	}
)

func TestCPUIDCaches(t *testing.T) {
	for _, test := range []struct {
		name      string
		registers registers
		want      []Cache
	}{
		{"Xeon Gold 6230, Cascade Lake", cascadeLake, []Cache{{1, 32 * kibi, 64, 8, 2}, {2, mebi, 64, 16, 2}, {3, 27*mebi + mebi/2, 64, 11, 64}}},
		{"Xeon 8480, Sapphire Rapids", sapphireRapids, []Cache{{1, 48 * kibi, 64, 12, 2}, {2, 2 * mebi, 64, 16, 2}, {3, 105 * mebi, 64, 15, 128}}},
		{"Core i7-4770, Haswell", haswell, []Cache{{1, 32 * kibi, 64, 8, 2}, {2, 256 * kibi, 64, 8, 2}, {3, 8 * mebi, 64, 16, 16}}},
		{"Ryzen 9 9950X, Zen 5", zen5, []Cache{{1, 48 * kibi, 64, 12, 2}, {2, mebi, 64, 16, 2}, {3, 32 * mebi, 64, 16, 16}}},
	} {
		require.Equal(t, cacheReport{test.want, "cpuid"}, findCaches(test.registers.cpuid, fstest.MapFS{}), test.name)
	}
}

// with returns r with one more answer.
func (r registers) with(leaf, sub uint32, answer ...uint32) registers {
	changed := registers{}
	for k, v := range r {
		changed[k] = v
	}
	changed[[2]uint32{leaf, sub}] = [4]uint32(answer)
	return changed
}

// TestCPUIDNonsense has answers of hypervisors that hide caches, or half of them.
func TestCPUIDNonsense(t *testing.T) {
	nothing := cacheReport{defaultCaches, "defaults"}
	everything := func(uint32, uint32) (a, b, c, d uint32) {
		return math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32
	}
	require.Equal(t, nothing, findCaches(everything, fstest.MapFS{}))
	for _, r := range []registers{
		{},
		{{0, 0}: {3}, {4, 0}: {0x121, 0x01C0003F, 63, 0}},
		haswell.with(4, 0, 0, 0, 0, 0),                      // no caches at all
		haswell.with(4, 0, 0x1C004121, 0, 0, 0),             // one byte
		haswell.with(4, 0, 0x1C004121, 0x01C0002A, 63, 0),   // lines of 43 bytes
		haswell.with(4, 2, 0x1C004143, 0x01C0003F, 7, 0),    // a level 2 of 4 KiB
		haswell.with(4, 2, 0x1C0041E3, 0x01C0003F, 511, 0),  // level 7
		zen5.with(0x8000_0001, 0, 0, 0, 0, 0),               // the leaf is not announced
		zen5.with(0x8000_001D, 0, 0, 0, 0, 0),               // or empty
		zen5.with(0x8000_0000, 0, 0x8000_0008, 0, 0, 0),     // or beyond the last
		sapphireRapids.with(4, 2, 0xFC004143, 1<<31, 63, 0), // many ways of one byte
		sapphireRapids.with(4, 2, 0xFC004143, 0xFFFFFFFF, 0xFFFFFFFF, 0),
	} {
		require.Equal(t, nothing, findCaches(r.cpuid, fstest.MapFS{}), "%x", r)
	}

	// What is left is used where one thing is wrong.
	got := findCaches(haswell.with(4, 3, 0x1C03C163, 0, 0, 0).cpuid, fstest.MapFS{})
	require.Equal(t, cacheReport{[]Cache{{1, 32 * kibi, 64, 8, 2}, {2, 256 * kibi, 64, 8, 2}}, "cpuid"}, got)
	got = findCaches(haswell.with(4, 0, 0x1FFFC121, 0x01C0003F, 63, 0).cpuid, fstest.MapFS{})
	require.Equal(t, Cache{1, 32 * kibi, 64, 8, 0}, got.caches[0], "shared by 2048")
	got = findCaches(sapphireRapids.with(0x8000_0000, 0, 0x8000_0028, 0, 0, 0).with(0x8000_0001, 0, 0, 0, 1<<22, 0).cpuid, fstest.MapFS{})
	require.Equal(t, 2*mebi, got.caches[1].Bytes, "announced, and empty, so Intel's leaf")
}

// sysfs has caches in folders, each as type, level, size, line, ways and list.
func sysfs(caches ...[6]string) fstest.MapFS {
	files := fstest.MapFS{"uevent": {}}
	for i, c := range caches {
		for j, name := range []string{"type", "level", "size", "coherency_line_size", "ways_of_associativity", "shared_cpu_list"} {
			if c[j] != "" {
				files[fmt.Sprintf("index%d/%s", i, name)] = &fstest.MapFile{Data: []byte(c[j] + "\n")}
			}
		}
	}
	return files
}

func TestSysfsCaches(t *testing.T) {
	none := registers{}.cpuid
	for _, test := range []struct {
		name  string
		sysfs fstest.MapFS
		want  []Cache
	}{
		{"Neoverse N1", sysfs([6]string{"Data", "1", "64K", "64", "4", "0"}, [6]string{"Instruction", "1", "64K", "64", "4", "0"},
			[6]string{"Unified", "2", "1024K", "64", "8", "0"}, [6]string{"Unified", "3", "32768K", "64", "16", "0-3,8-9"}),
			[]Cache{{1, 64 * kibi, 64, 4, 1}, {2, mebi, 64, 8, 1}, {3, 32 * mebi, 64, 16, 6}}},
		{"without ways and lists", sysfs([6]string{"Data", "1", "64K", "64"}, [6]string{"Unified", "2", "1M", "64", "", "x"}),
			[]Cache{{1, 64 * kibi, 64, 0, 0}, {2, mebi, 64, 0, 0}}},
		{"in another order", sysfs([6]string{"Unified", "2", "512K", "128"}, [6]string{"Data", "1", "32K", "64"}),
			[]Cache{{1, 32 * kibi, 64, 0, 0}, {2, 512 * kibi, 128, 0, 0}}},
	} {
		require.Equal(t, cacheReport{test.want, "sysfs"}, findCaches(none, test.sysfs), test.name)
	}
	for name, files := range map[string]fstest.MapFS{
		"empty":       {},
		"no sizes":    sysfs([6]string{"Data", "1", "", "64"}, [6]string{"Unified", "2", "", "64"}),
		"no level 1":  sysfs([6]string{"Unified", "2", "512K", "64"}),
		"no level 2":  sysfs([6]string{"Data", "1", "32K", "64"}),
		"other sizes": sysfs([6]string{"Data", "1", "-32K", "64"}, [6]string{"Unified", "2", "1T", "64"}),
		"falling":     sysfs([6]string{"Data", "1", "128K", "64"}, [6]string{"Unified", "2", "64K", "64"}),
		"huge":        sysfs([6]string{"Data", "1", "2147483647G", "64"}, [6]string{"Unified", "2", "2147483647G", "64"}),
	} {
		require.Equal(t, cacheReport{defaultCaches, "defaults"}, findCaches(none, files), name)
	}
	// CPUID goes first.
	got := findCaches(haswell.cpuid, sysfs([6]string{"Data", "1", "64K", "64"}, [6]string{"Unified", "2", "1M", "64"}))
	require.Equal(t, "cpuid", got.from)
}

func TestCountList(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4-5": 4, "": 0, "3-1": 0, "-": 0, "0,": 0, "0-99999999": 0} {
		require.Equal(t, want, countList(list), list)
	}
}

// TestCaches compares what CPUID says here with what Linux does.
func TestCaches(t *testing.T) {
	caches := Caches()
	require.GreaterOrEqual(t, len(caches), 2)
	for i, c := range caches {
		require.Equal(t, i+1, c.Level)
	}
	require.Equal(t, caches, plausible(caches))
	t.Logf("from %s: %+v", CachesFrom(), caches)
	if runtime.GOOS != "linux" || CachesFrom() != "cpuid" {
		t.Skip("nothing to compare with")
	}
	// Under an emulator sysfs is the host's.
	linux := plausible(readCaches(os.DirFS(sysfsCaches)))
	if linux == nil || linux[0].Bytes != caches[0].Bytes {
		t.Skip("sysfs is not this processor's, or is empty")
	}
	for i, c := range caches[:min(len(caches), len(linux))] {
		c.SharedBy, linux[i].SharedBy = 0, 0 // CPUID has room for more than there are
		require.Equal(t, linux[i], c)
	}
}
