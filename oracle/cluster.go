package oracle

// Cluster says how errors gather in regions of one shape: rows, columns, or
// output tiles such as a kernel's blocks of threads work on.
type Cluster struct {
	Height   int `json:"height"` // of a region
	Width    int `json:"width"`
	Hit      int `json:"hit"`      // regions with an element outside
	Regions  int `json:"regions"`  // all regions
	Row      int `json:"row"`      // first element of the region with the most
	Col      int `json:"col"`      //
	Outside  int `json:"outside"`  // elements outside in that region
	Elements int `json:"elements"` // elements of it that were compared
}

// tileSizes are the sides of square tiles, each a multiple of the first.
var tileSizes = [...]int{16, 64, 128}

// counts are numbers of elements outside.
type counts struct {
	height, width int
	rows, cols    []int
	tiles         []int // of the first size, row by row
	any           bool
}

func newCounts(height, width int) counts { return counts{height: height, width: width} }

func (c *counts) add(row, col int) {
	c.begin()
	across := (c.width + tileSizes[0] - 1) / tileSizes[0]
	c.rows[row]++
	c.cols[col]++
	c.tiles[row/tileSizes[0]*across+col/tileSizes[0]]++
}

// begin makes the counts where there are none yet.
func (c *counts) begin() {
	if c.any {
		return
	}
	c.any = true
	c.rows, c.cols = make([]int, c.height), make([]int, c.width)
	across := (c.width + tileSizes[0] - 1) / tileSizes[0]
	c.tiles = make([]int, across*((c.height+tileSizes[0]-1)/tileSizes[0]))
}

// plus adds the counts of other elements of the same result.
func (c *counts) plus(o *counts) {
	if !o.any {
		return
	}
	c.begin()
	for _, pair := range [][2][]int{{c.rows, o.rows}, {c.cols, o.cols}, {c.tiles, o.tiles}} {
		for i, n := range pair[1] {
			pair[0][i] += n
		}
	}
}

// clusters returns rows, columns and tiles of each size, of a comparison of the elements
// at the given places or, where that is nil, of all.
func (c *counts) clusters(at []int) []Cluster {
	if !c.any {
		return nil
	}
	all := []Cluster{
		c.cluster(1, c.width, c.rows),
		c.cluster(c.height, 1, c.cols),
	}
	for _, size := range tileSizes {
		all = append(all, c.cluster(size, size, c.merge(size)))
	}
	if at != nil {
		for i := range all {
			all[i].Elements = all[i].among(at, c.width)
		}
	}
	return all
}

// among counts the elements of the region with the most that are at the given places, in
// a result of so many columns.
func (k *Cluster) among(at []int, cols int) (n int) {
	for _, place := range at {
		row, col := place/cols-k.Row, place%cols-k.Col
		if row >= 0 && row < k.Height && col >= 0 && col < k.Width {
			n++
		}
	}
	return n
}

// merge adds the counts of tiles to those of larger ones.
func (c *counts) merge(size int) []int {
	least := tileSizes[0]
	from := (c.width + least - 1) / least
	across := (c.width + size - 1) / size
	merged := make([]int, across*((c.height+size-1)/size))
	for t, n := range c.tiles {
		merged[t/from*least/size*across+t%from*least/size] += n
	}
	return merged
}

// cluster describes regions of a size, row by row.
func (c *counts) cluster(height, width int, regions []int) Cluster {
	k := Cluster{Height: height, Width: width, Regions: len(regions)}
	across := (c.width + width - 1) / width
	for i, n := range regions {
		if n > 0 {
			k.Hit++
		}
		if n > k.Outside {
			k.Outside = n
			k.Row, k.Col = i/across*height, i%across*width
		}
	}
	k.Elements = min(height, c.height-k.Row) * min(width, c.width-k.Col)
	return k
}
