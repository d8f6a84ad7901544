package explain

import (
	"math"
	"slices"
	"sort"
)

const (
	mostWrong = 512 // wrong elements that are looked at
	mostRight = 384 // other elements
)

// Spread returns up to most of the numbers from 0 to n-1, evenly.
func Spread(n, most int) []int {
	numbers := make([]int, min(n, most))
	for i := range numbers {
		numbers[i] = i * n / len(numbers)
	}
	return numbers
}

// Places returns elements of a matrix of rows x cols to look at, as ascending indexes: all
// of a small one, and otherwise about budget or fewer: such as are said to be wrong, which
// may be none, and others. Those are in the rows and in the columns of the wrong ones, next
// to them, and anywhere.
func Places(rows, cols, budget int, wrong []int) (places []int) {
	size := rows * cols
	if size <= min(budget, mostWrong+mostRight) {
		return Spread(size, size)
	}
	most := min(mostWrong, budget/2)
	places = spread(cols, wrong, most)
	others := min(mostRight, budget/2)
	if len(places) == 0 {
		others += most
	}
	chosen := len(places)
	add := func(i, j int) { places = append(places, i*cols+j) }
	for n := range others {
		// Two irrational numbers fill a square evenly (Roberts' R2 sequence).
		i := int(float64(rows) * frac(0.5+float64(float64(n)*0.7548776662466927)))
		j := int(float64(cols) * frac(0.5+float64(float64(n)*0.5698402909980532)))
		near := 0
		if chosen > 0 {
			near = places[n%chosen]
		}
		switch {
		case n == 0:
			add(0, 0)
		case n == 1:
			add(rows-1, cols-1)
		case chosen > 0 && n%3 == 0:
			add(near/cols, j)
		case chosen > 0 && n%3 == 1:
			add(i, near%cols)
		default:
			add(i, j)
		}
	}
	places = append(places, around(rows, cols, wrong)...)
	slices.Sort(places)
	return slices.Compact(places)
}

// around returns places just outside the rows and the columns of those that are wrong, so
// that it is known where these end.
func around(rows, cols int, wrong []int) (places []int) {
	if len(wrong) == 0 {
		return nil
	}
	row, col := func(at int) int { return at / cols }, func(at int) int { return at % cols }
	lines := func(of func(at int) int) (before, after int) {
		before, after = of(wrong[0]), of(wrong[0])
		for _, at := range wrong {
			before, after = min(before, of(at)), max(after, of(at))
		}
		return before - 1, after + 1
	}
	above, below := lines(row)
	left, right := lines(col)
	add := func(i, j int) {
		if i >= 0 && i < rows && j >= 0 && j < cols {
			places = append(places, i*cols+j)
		}
	}
	for _, n := range Spread(len(wrong), 8) {
		at := wrong[n]
		add(above, col(at))
		add(below, col(at))
		add(row(at), left)
		add(row(at), right)
	}
	return places
}

func frac(x float64) float64 { return x - math.Floor(x) }

// spread returns up to n of the given places, of as many rows and columns as it can.
func spread(cols int, all []int, n int) []int {
	if len(all) <= n {
		return slices.Clone(all)
	}
	all = slices.Clone(all)
	slices.Sort(all)
	var lines [][]int
	for from := 0; from < len(all); {
		to := from + sort.Search(len(all)-from, func(d int) bool { return all[from+d]/cols > all[from]/cols })
		lines = append(lines, all[from:to])
		from = to
	}
	taken := min(len(lines), n)
	each := (n + taken - 1) / taken
	var places []int
	for r, at := range Spread(len(lines), taken) {
		row := lines[at]
		start := frac(float64(float64(r) * 0.6180339887498949))
		for e := range min(each, len(row)) {
			places = append(places, row[int(float64(len(row))*frac(start+float64(e)/float64(each)))])
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}
