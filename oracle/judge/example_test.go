package judge_test

import (
	"context"
	"fmt"
	"os"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/tensor"
)

// A kernel left out the second of two blocks of K.
func ExampleCheck() {
	one, half := fp8.EncodeOne(1.0, fp8.E4M3, fp8.Policy{}), fp8.EncodeOne(0.5, fp8.E4M3, fp8.Policy{})
	a := &tensor.Tensor{Name: "a", Shape: []int{2, 4}, Block: tensor.Block{Rows: 1, Cols: 2},
		Codes: []byte{one, half, one, half, half, half, one, one}, Scales: []float32{1, 2, 4, 8}}
	b := &tensor.Tensor{Name: "b", Shape: []int{1, 4}, Codes: []byte{one, one, one, one}, Scales: []float32{1}}
	v, err := judge.Check(context.Background(), []float32{1.5, 4}, nil, a, b, judge.Claim{Want: judge.Canonical}, judge.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(v.Title())
	fmt.Println(v.FirstLine())
	fmt.Println("best explanation:", v.Explanation.Findings[0].Fault.Kind)
	// Output:
	// FAIL: 2 of 2 elements differ from octavo's canonical result
	// First that differs: row 0, column 0: got 1.5, want 4.5, off by 3, explained by block 1 of K
	// best explanation: k-lost
}
