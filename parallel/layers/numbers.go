package layers

import "github.com/octavo-fp8/octavo/nn"

// passNumber sends a number from one rank to another, which gets it.
func (r *Rank) passNumber(about subject, from, to int, x *float64) error {
	switch {
	case from == to:
	case r.id == from:
		r.world.traffic.count(r.members[r.id], "norm", 8)
		return r.send(to, letter{subject: about, numbers: []float64{*x}})
	case r.id == to:
		l, err := r.receive(from, about)
		if err != nil {
			return err
		}
		*x = l.numbers[0]
	}
	return nil
}

// mergeAmaxes returns the largest of what all ranks have recorded, by way of rank 0.
func (r *Rank) mergeAmaxes(own nn.StepAmax) (nn.StepAmax, error) {
	about := subject{amaxFormat, "scales", 0, 0}
	send := func(to int, a nn.StepAmax) error {
		data, err := a.MarshalBinary()
		if err != nil {
			return err
		}
		r.world.traffic.count(r.members[r.id], amaxFormat, int64(len(data)))
		return r.send(to, letter{subject: about, data: data})
	}
	receive := func(from int) (a nn.StepAmax, err error) {
		l, err := r.receive(from, about)
		if err == nil {
			err = a.UnmarshalBinary(l.data)
		}
		return a, err
	}
	if r.id != 0 {
		if err := send(0, own); err != nil {
			return own, err
		}
		return receive(0)
	}
	all := []nn.StepAmax{own}
	for from := 1; from < r.Ranks(); from++ {
		a, err := receive(from)
		if err != nil {
			return own, err
		}
		all = append(all, a)
	}
	merged, err := nn.MergeStepAmax(all...)
	for to := 1; to < r.Ranks() && err == nil; to++ {
		err = send(to, merged)
	}
	return merged, err
}
