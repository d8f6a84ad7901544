package audit

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/octavo-fp8/octavo/oracle/fault"
)

// FuzzFault puts faults of any parameters into a product, as a command line may name them.
func FuzzFault(f *testing.F) {
	p := exactProduct(12, 9, 40)
	for _, wrong := range Faults(fault.Float32, p) {
		text, err := json.Marshal(wrong)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		wrong.By, wrong.Of = 0, 0
		if text, err = json.Marshal(wrong); err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"kind":"codes-swapped","of":"A"}`))
	f.Add([]byte(`{"kind":"scales-of-tile","of":"A"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var wrong fault.Fault
		if json.Unmarshal(text, &wrong) != nil {
			return
		}
		r, err := Run[float32](t.Context(), p, Test{Criteria: []Criterion{{Rtol: 1}}}, Options{Faults: []fault.Fault{wrong}, NoProposal: true, Workers: 1})
		if err != nil {
			if errors.Is(err, fault.ErrNotHere) {
				t.Error("a fault that the product cannot have is no error")
			}
			return
		}
		if len(r.Faults) > 1 {
			t.Errorf("%d outcomes", len(r.Faults))
		}
	})
}
