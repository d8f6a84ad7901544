package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/oracle/judge"
)

// sampleFlags say which elements of C are looked at.
type sampleFlags struct {
	judge.Sample
	elements int
}

// defaultSample is the number of elements that --sample without a number stands for.
const defaultSample = 1 << 16

func (s *sampleFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	wholeFlag(cmd, &s.elements, 0, math.MaxInt32, "sample", "judge `N` elements of C at random, not all")
	f.Lookup("sample").NoOptDefVal = strconv.Itoa(defaultSample)
	f.IntSliceVar(&s.Rows, "sample-rows", nil, "`ROWS` of C to judge whole, such as 0,17")
	f.IntSliceVar(&s.Cols, "sample-cols", nil, "`COLUMNS` of C to judge whole")
	f.Var(&parsed[[]judge.Tile]{&s.Tiles, "", "TILES", parseTiles}, "sample-tiles", "parts of C to judge whole, such as 128x128+0+3968: height x width + row + column of the first element")
	seedFlag(cmd, &s.Seed, "seed of the sample")
}

// sample returns the sample, or nil if all of C is to be looked at.
func (s *sampleFlags) sample(cmd *cobra.Command) (*judge.Sample, error) {
	named := len(s.Rows)+len(s.Cols)+len(s.Tiles) > 0
	switch {
	case s.elements > 0:
		s.Elements = s.elements
		return &s.Sample, nil
	case cmd.Flags().Changed("seed"):
		return nil, usagef("--seed is of a sample: add --sample")
	case named:
		s.Elements, s.Suspects = -1, -1
		return &s.Sample, nil
	}
	return nil, nil
}

func parseTiles(text string) (tiles []judge.Tile, err error) {
	for part := range strings.SplitSeq(text, ",") {
		var t judge.Tile
		if n, err := fmt.Sscanf(part, "%dx%d+%d+%d", &t.Height, &t.Width, &t.Row, &t.Col); err != nil || n != 4 ||
			part != fmt.Sprintf("%dx%d+%d+%d", t.Height, t.Width, t.Row, t.Col) {
			return nil, errors.New("want tiles such as 128x128+0+3968")
		}
		tiles = append(tiles, t)
	}
	return tiles, nil
}
