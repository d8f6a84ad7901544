package cpu

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
)

// Cache is one level of the data caches of a processor.
type Cache struct {
	Level    int
	Bytes    int
	Line     int // bytes; like Ways, it only tells whether a report is plausible
	Ways     int // 0 unknown
	SharedBy int // logical processors, 0 unknown
}

// Caches returns the data and unified caches, nearest first: one for each level, from
// level 1 on, at least two of them. They are what CPUID says; where it says nothing or
// nonsense, as some hypervisors have it, and on other processors, what Linux says in
// sysfs; and otherwise what any processor of the last ten years has at least. See
// [CachesFrom].
//
// They are those of the processor that asked first. Cores of several sizes are not told
// apart.
func Caches() []Cache { return known().caches }

// CachesFrom says where [Caches] comes from: "cpuid", "sysfs" or "defaults".
func CachesFrom() string { return known().from }

type cacheReport struct {
	caches []Cache
	from   string
}

var known = sync.OnceValue(func() cacheReport { return findCaches(cpuid, os.DirFS(sysfsCaches)) })

// sysfsCaches has the folders index0, index1 and so on where there is a sysfs.
const sysfsCaches = "/sys/devices/system/cpu/cpu0/cache"

// defaultCaches are small ones, since too small a guess costs less than too large a one.
var defaultCaches = []Cache{
	{Level: 1, Bytes: 32 << 10, Line: 64},
	{Level: 2, Bytes: 256 << 10, Line: 64},
	{Level: 3, Bytes: 2 << 20, Line: 64},
}

func findCaches(cpuid func(leaf, sub uint32) (a, b, c, d uint32), sysfs fs.FS) cacheReport {
	for _, leaf := range cacheLeaves(cpuid) {
		if found := plausible(leafCaches(cpuid, leaf)); found != nil {
			return cacheReport{found, "cpuid"}
		}
	}
	if found := plausible(readCaches(sysfs)); found != nil {
		return cacheReport{found, "sysfs"}
	}
	return cacheReport{defaultCaches, "defaults"}
}

// cacheLeaves returns the leaves of CPUID that may describe caches: Intel's, and AMD's
// of the same layout, which a bit announces.
func cacheLeaves(cpuid func(leaf, sub uint32) (a, b, c, d uint32)) []uint32 {
	const (
		intel, amd = 4, 0x8000_001D
		topology   = 1 << 22 // in ECX of 8000_0001
	)
	var leaves []uint32
	if last, _, _, _ := cpuid(0x8000_0000, 0); last >= amd && last < 0x8001_0000 {
		if _, _, features, _ := cpuid(0x8000_0001, 0); features&topology != 0 {
			leaves = append(leaves, amd)
		}
	}
	if last, _, _, _ := cpuid(0, 0); last >= intel && last < 0x8000_0000 {
		leaves = append(leaves, intel)
	}
	return leaves
}

// leafCaches returns what is in the subleaves of a leaf.
func leafCaches(cpuid func(leaf, sub uint32) (a, b, c, d uint32), leaf uint32) []Cache {
	const (
		data, unified = 1, 3
		most          = 16 // subleaves, if none says that it is the last
	)
	var list []Cache
	for sub := range uint32(most) {
		a, b, c, _ := cpuid(leaf, sub)
		kind := a & 31
		if kind == 0 {
			break
		}
		if kind != data && kind != unified {
			continue
		}
		ways, partitions, line, sets := int(b>>22)+1, int(b>>12&1023)+1, int(b&4095)+1, int64(c)+1
		list = append(list, Cache{
			Level: int(a >> 5 & 7), Line: line, Ways: ways, SharedBy: int(a>>14&4095) + 1,
			Bytes: int(min(int64(ways)*int64(partitions)*int64(line)*sets, maxCache+1)),
		})
	}
	return list
}

// readCaches returns what is in the folders of a sysfs; sysfs may be empty.
func readCaches(sysfs fs.FS) []Cache {
	folders, err := fs.Glob(sysfs, "index*")
	if err != nil {
		return nil
	}
	var list []Cache
	for _, folder := range folders {
		text := func(name string) string {
			b, err := fs.ReadFile(sysfs, path.Join(folder, name))
			if err != nil {
				return ""
			}
			return strings.TrimSpace(string(b))
		}
		number := func(name string) int {
			n, err := strconv.ParseInt(text(name), 10, 31)
			if err != nil {
				return 0
			}
			return int(n)
		}
		if kind := text("type"); kind != "Data" && kind != "Unified" {
			continue
		}
		list = append(list, Cache{
			Level: number("level"), Bytes: parseSize(text("size")), Line: number("coherency_line_size"),
			Ways: number("ways_of_associativity"), SharedBy: countList(text("shared_cpu_list")),
		})
	}
	return list
}

// parseSize returns the bytes of a size like 48K, or 0.
func parseSize(s string) int {
	shift := 0
	for i, unit := range []string{"K", "M", "G"} {
		if rest, ok := strings.CutSuffix(s, unit); ok {
			s, shift = rest, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(s, 10, 31)
	if err != nil || n < 0 {
		return 0
	}
	return int(min(n<<shift, maxCache+1))
}

// countList returns how many processors are in a list like 0-3,8, or 0.
func countList(s string) int {
	total := 0
	for item := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.ParseUint(first, 10, 16)
		hi, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || hi < lo {
			return 0
		}
		total += int(hi-lo) + 1
	}
	return total
}

// maxCache is more than any cache has, 1 GiB, and fits an int everywhere.
const maxCache = 1 << 30

// plausible returns the levels of a list that can be true, in order, or nil if level 1
// or level 2 cannot. A number of processors that cannot be true is unknown.
func plausible(list []Cache) []Cache {
	least := []int{4 << 10, 64 << 10, 256 << 10, 256 << 10}
	var good []Cache
	for level := 1; level <= len(least); level++ {
		for _, c := range list {
			if c.Level != level {
				continue
			}
			if c.Bytes < least[level-1] || c.Bytes > maxCache || c.Line < 16 || c.Line > 1024 || c.Line&(c.Line-1) != 0 {
				break
			}
			if level > 1 && c.Bytes < good[level-2].Bytes {
				break
			}
			if c.Ways < 0 || c.Ways > c.Bytes/c.Line {
				c.Ways = 0
			}
			// A core has up to 8 threads, and some cores share a level 2.
			if most := [...]int{16, 64, 4096, 4096}[level-1]; c.SharedBy > most {
				c.SharedBy = 0
			}
			good = append(good, c)
			break
		}
		if len(good) < level {
			break
		}
	}
	if len(good) < 2 {
		return nil
	}
	return good
}
