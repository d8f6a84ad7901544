package flash

import "github.com/octavo-fp8/octavo/internal/number"

import "github.com/octavo-fp8/octavo/tensor"

// head is a head of K and V as the model reads them.
type head struct {
	keys   []float32 // [keys, D] decoded codes
	first  int       // row of K's first token
	values []float32 // [DV, keys] decoded codes, or values with their scales
	codes  []byte    // the codes of values, where an instruction takes codes
	finite bool      // of values
	ratios []float32 // rn(vs/vmax) of each key, where scales of V vary by token
	factor []float32 // F of each column
}

func (m *model) head(kv int) *head {
	n, dv := m.s.Keys, m.s.ValueDim
	h := &head{keys: m.k.head(kv, n), first: m.k.row(kv, 0), values: make([]float32, n*dv),
		finite: true}
	withCodes := m.Values.Order == Instruction && m.Values.Model.Float == 0
	if withCodes {
		h.codes = make([]byte, n*dv)
	}
	row := make([]float32, dv)
	for j := range n {
		r := m.v.row(kv, j)
		if m.scaledV {
			tensor.DequantizeRows(row, m.v.Codes, r)
		} else {
			m.v.decode(row, r)
		}
		for d, v := range row {
			h.values[d*n+j] = v
			if !number.IsFinite(v) {
				h.finite = false
			}
		}
		if withCodes {
			for d, c := range m.v.Codes.Row(r) {
				h.codes[d*n+j] = c
			}
		}
	}
	h.scaleValues(m, kv)
	return h
}

// scaleValues splits the scales of V into what P and what the output is multiplied by.
func (h *head) scaleValues(m *model, kv int) {
	first := m.v.row(kv, 0)
	h.factor = make([]float32, m.s.ValueDim)
	switch {
	case m.s.Keys == 0:
	case m.scaledV:
		for d := range h.factor {
			h.factor[d] = 1
		}
	case m.byTokenV:
		var most float32
		for j := range m.s.Keys {
			most = max(most, m.v.scale(first+j, 0))
		}
		h.ratios = make([]float32, m.s.Keys)
		for j := range h.ratios {
			h.ratios[j] = 1
			if most != 0 {
				h.ratios[j] = m.v.scale(first+j, 0) / most
			}
		}
		for d := range h.factor {
			h.factor[d] = most
		}
	default:
		for d := range h.factor {
			h.factor[d] = m.v.scale(first, d)
		}
	}
	if scale := m.pScale(); scale != 1 && m.fault.Kind != pScaleKept {
		for d := range h.factor {
			h.factor[d] /= scale
		}
	}
}
