package identify

import "github.com/octavo-fp8/octavo/oracle"

// amxTile is the number of products of an element that one AMX-FP8 instruction adds.
const amxTile = 64

// amxEvidence is that of readings of AMX-FP8.
const amxEvidence = "assumed: amx-fp8 is what the specification says, and this another public reading of it; no results of hardware are public"

// amxReadings are other ways than that of the model amx-fp8 in which the products of a tile,
// 16 times four lanes, may be added, before c is. Products of FP8 are exact in float32.
func (s Setup) amxReadings() (all []Candidate) {
	orders := scalings[:3]
	if s.E8M0 {
		orders = []scaling{aThenB}
	}
	for _, reading := range []struct {
		name string
		add  func(products []float32) float32
	}{
		{"four lanes are summed apart and meet in pairs (EP4398097A2)", func(p []float32) float32 {
			l := lanes(p)
			return (l[0] + l[1]) + (l[2] + l[3])
		}},
		{"four lanes are summed apart and meet in turn (EP4398097A2)", func(p []float32) float32 {
			l := lanes(p)
			return ((l[0] + l[1]) + l[2]) + l[3]
		}},
		{"pairs of lanes are added to two sums (Bochs, March 2026)", func(p []float32) float32 {
			var two [2]float32
			quads(p, func(q *[4]float32) {
				two[0] += q[0] + q[1]
				two[1] += q[2] + q[3]
			})
			return two[0] + two[1]
		}},
		{"pairs of lanes are added, and then to one sum", func(p []float32) (sum float32) {
			quads(p, func(q *[4]float32) { sum += (q[0] + q[1]) + (q[2] + q[3]) })
			return sum
		}},
		{"products are added to one sum in turn", inOrder},
	} {
		for _, order := range orders {
			name := "amx-fp8 if " + reading.name
			if len(orders) > 1 {
				name += ", " + order.name
			}
			c := sums(name, order, func(products []float32) (sum float32) {
				for lo := 0; lo < len(products); lo += amxTile {
					sum += reading.add(products[lo:min(lo+amxTile, len(products))])
				}
				return sum
			})
			c.Evidence = amxEvidence
			all = append(all, c)
		}
	}
	four, _ := oracle.ParseModel("ace-top4mx")
	four.E8M0, four.Flush, four.Evidence = false, false, amxEvidence
	four.Name = "amx-fp8 if four lanes are exact, rounded once and added to one sum"
	for _, order := range s.orders() {
		all = append(all, newCandidate(oracle.Kernel{Model: four, Promote: amxTile, Scales: order}, s.scaled() && !s.E8M0))
	}
	return all
}

// lanes are the sums of each fourth product.
func lanes(products []float32) (l [4]float32) {
	for i, p := range products {
		l[i%4] += p
	}
	return l
}

// quads calls add for each four products, zeros at the end.
func quads(products []float32, add func(q *[4]float32)) {
	for lo := 0; lo < len(products); lo += 4 {
		var q [4]float32
		copy(q[:], products[lo:])
		add(&q)
	}
}
