package scaling_test

import (
	"encoding/json"
	"testing"

	"github.com/octavo-fp8/octavo/scaling"
)

// FuzzState restores whatever is JSON: it is refused and changes nothing, or
// can be saved, merged and restored again.
func FuzzState(f *testing.F) {
	for _, s := range []string{
		`{"version":2,"step":3,"histories":{"w":{"grid":[1,1],"blocks":[{"scale":2,"current":0,"past":[1,"NaN","+Inf",0.1]}]}}}`,
		`{"version":2,"histories":{"":{"grid":[1,1],"blocks":[{"scale":1e-45,"current":-0,"past":null}]}}}`,
		`{"version":2,"histories":{"w":{"grid":[1,1],"blocks":[{"scale":0}]}}}`,
		`{"version":2,"histories":{"w":{"grid":[1,1],"blocks":[{"scale":1,"past":[-1]}]}}}`,
		`{"version":2,"step":3,"histories":{"w":{"format":"E5M2","block":"1x128","grid":[1,2],"blocks":[{"scale":2,"past":[1]},{"scale":3,"current":"NaN","past":[]}]}}}`,
		`{"version":2,"histories":{"w":{"format":"E4M3","block":"row","grid":[0,0],"blocks":[]}}}`,
		`{"version":2,"histories":{"w":{"format":"E4M3","block":"row","grid":[4611686018427387904,4],"blocks":[]}}}`,
		`{"version":2}`, `{"version":2,"step":-1}`, `{}`, `null`, `{"version":2,"histories":{"w":{"blocks":[{"scale":"nan"}]}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s scaling.State
		if json.Unmarshal(data, &s) != nil {
			return
		}
		var hs scaling.Histories
		if err := hs.Restore(s); err != nil {
			if hs.Step() != 0 || len(hs.State().Histories) != 0 {
				t.Fatalf("refused with %v, and changed", err)
			}
			if _, err := scaling.Merge(s); err == nil {
				t.Fatal("Merge takes what Restore refuses")
			}
			return
		}
		saved := bitwise(hs.State())
		merged, err := scaling.Merge(s, s)
		if err != nil {
			t.Fatal(err)
		}
		var again scaling.Histories
		if err := again.Restore(hs.State()); err != nil || bitwise(again.State()) != saved {
			t.Fatalf("%s\nbecomes\n%s, %v", saved, bitwise(again.State()), err)
		}
		if err := again.Restore(merged); err != nil {
			t.Fatal(err)
		}
		for name, want := range s.Histories {
			r := delayed(3)
			r.Format, r.Block = want.Format, want.Block
			h, err := hs.Get(name, r)
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range want.Blocks {
				if h.Scale(i).Multiplier != float32(b.Scale) {
					t.Fatalf("%q: scale %v, want %v", name, h.Scale(i), b.Scale)
				}
			}
			h.Update()
			if err := hs.State().Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
