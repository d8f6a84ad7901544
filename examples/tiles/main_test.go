package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/octavo-fp8/octavo/oracle/oracletest"
)

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the kernel's own test: PASS: cosine 0.986, 0.98 is enough
	// FAIL: 582 of 9100 elements are outside the bound of the exact result
	//   rows: 53 of 70; row 55 has 52 of its 130 elements
	//   columns: 128 of 130; column 106 has 12 of its 70 elements
	// explained: every 32 rows have the scales of A of the first of them: explains 344 of 344 wrong elements looked at, in 53 of 53 rows
	// with the line mended:
	// PASS: all 9100 elements are within the bound of the exact result
	// PASS: all 9100 elements are the prediction of hopper-wgmma, bit for bit
}

// TestKernel holds the mended kernel to the bits of what it is, also where tiles are cut
// off by the end of C and K.
func TestKernel(t *testing.T) {
	for _, size := range [][3]int{{32, 64, 128}, {33, 65, 129}, {1, 300, 1000}, {100, 1, 70}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			a, b, err := operands(t.Context(), size[0], size[1], size[2])
			if err != nil {
				t.Fatal(err)
			}
			oracletest.Check(t, launch(a, b, true), a, b, sameBits, oracletest.Options{})
		})
	}
}
