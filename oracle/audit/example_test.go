package audit_test

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/audit"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/power"
	"github.com/octavo-fp8/octavo/tensor"
)

// A test with operands that are subnormals and an absolute tolerance sees nothing.
func ExampleRun() {
	a, b := power.Operands(16, 16, 128, fp8.E4M3, tensor.Block{Rows: 1, Cols: 32}, 1)
	test := audit.Test{Criteria: []audit.Criterion{{Rtol: 1e-2, Atol: 1e-1}}}
	zeros := fault.Fault{Kind: "unwritten"}
	r, err := audit.Run[float32](context.Background(), fault.Product{A: a, B: b}, test, audit.Options{Faults: []fault.Fault{zeros}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Summary())
	fmt.Println(r.Worst().Text)
	fmt.Println(r.Proposal.Faults[0].Outcome, "by", r.Proposal.Faults[0].By[0])
	// Output:
	// the test lets 1 of 1 fault pass
	// C is not written: it holds 0
	// caught by exact-sums
}
